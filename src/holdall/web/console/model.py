"""Models: a list of them, and what each declares."""

from __future__ import annotations

from starlette.responses import Response

from holdall import Model
from holdall.models import describe_model
from holdall.web.console.section import Page, Section
from holdall.web.console.visit import RefusedVisitError, Visit


def find_model(visit: Visit) -> tuple[str, type[Model]]:
    """Return the model that the URL names, with that name."""
    name = str(visit.request.path_params["model"])
    found = visit.desk.models.get(name)
    if found is None:
        raise RefusedVisitError(
            404, "Not found", f"The console has no model {name:.200}.", "see the list of models"
        )
    return name, found


async def _list(visit: Visit) -> Response:
    facts = [describe_model(model) for model in visit.desk.models.values()]
    return visit.render("models.html", models=facts, title="Models")


async def _show(visit: Visit) -> Response:
    _, model = find_model(visit)
    facts = describe_model(model)
    return visit.render("model.html", facts=facts, title=facts["name"])


SECTION = Section("models", "Models", "layers", (Page("/models", _list), Page("/models/{model}", _show)))
