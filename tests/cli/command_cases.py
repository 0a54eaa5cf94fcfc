"""Every command with valid and invalid input, run as from a shell; ``test_cli_every_command`` runs them.

The commands run in a directory with a small database, and a module ``market`` with its models and jobs. Words that
begin with ``@`` are replaced by IDs in that database.
"""

from __future__ import annotations

from typing import NamedTuple

MODULE = '''
from datetime import datetime
from holdall import Archive, Index, Key, Model, SortKey, field, job

class Order(
    Model,
    indexes=[Index("by_product", ["product"], ["number"])],
    archive=Archive(timestamp="placed", after_days=30, key="orders/{partitionKey}/{sortKey}"),
):
    customer: Key[str]
    number: SortKey[int]
    placed: datetime
    product: str = "tea"
    quantity: int = 1

class Customer(Model):
    name: Key[str]
    mail: str | None = field(default=None, unique=True)

class Guest(Model, table="guests"):
    name: Key[str]
    mail: str | None = None

class Base(Model, abstract=True):
    """An abstract model, without items."""

@job("market-work", retries=0)
def work():
    raise ValueError("always")

def convert(old):
    return {"name": old.name}
'''


class Good(NamedTuple):
    """A command line that succeeds: its arguments, and part of its output on either stream."""

    words: str
    prints: str
    typed: str | None = None


class Bad(NamedTuple):
    """A command line that fails: its arguments, the exit status, and part of the error."""

    words: str
    status: int
    problem: str
    typed: str | None = None


class Cases(NamedTuple):
    """The valid and invalid input of one command."""

    good: list[Good]
    bad: list[Bad]


ARTIFACT = "there is no artifact"
NAMES = [
    Bad("no-app prod", 3, "no-app"),
    Bad("app none", 3, "none"),
    Bad("app", 2, "Missing argument 'ALIAS'"),
    Bad("app prod --table none", 2, "the table none for artifacts does not exist"),
]
ROLLOUTS = [
    Bad("app", 2, "Missing argument 'ALIAS'"),
    Bad("no-app prod", 5, "the alias 'prod' of 'no-app' has never had a rollout"),
    Bad("app prod", 5, "the alias 'prod' of 'app' has never had a rollout"),
]
ARCHIVE_MODELS = [
    Bad("market:Customer", 2, "Customer"),
    Bad("nothing:Order", 2, "there is no module nothing"),
    Bad("market:None", 2, "market has no model 'None'"),
]

COMMANDS: dict[str, Cases] = {
    # --- aliases ---
    "alias delete": Cases(
        [Good("app prod", "alias prod of app deleted"), Good("app none", "nothing to delete")],
        [
            Bad("app", 2, "Missing argument 'ALIAS'"),
            Bad("app safe", 5, "--allow-protected"),
            Bad("app prod --expect-revision old", 4, "revision"),
            Bad("app prod --app nothing", 2, "there is no module nothing"),
        ],
    ),
    "alias history": Cases(
        [Good("app prod", "change"), Good("app none", "has no history")],
        [Bad("app", 2, "Missing argument 'ALIAS'"), Bad("app prod --limit 0", 2, "x>=1")],
    ),
    "alias list": Cases([Good("app", "prod"), Good("no-app", "no-app has no aliases")], [Bad("", 2, "NAME")]),
    "alias resolve": Cases(
        [Good("app prod --key ada", "1"), Good("app prod --count 10 --json", '"count": 10')],
        [
            *NAMES,
            Bad("app prod --key a --count 2", 2, "pass one or the other"),
            Bad("app prod --count x", 2, "'x'"),
        ],
    ),
    "alias rollback": Cases(
        [Good("app prod --by ada", "serves 2"), Good("app prod --to 1", "serves 2")],
        [
            *NAMES,
            Bad("app prod --to 9", 2, "no change 9 in its history"),
            Bad("app prod --to 1 --to-version 1", 2, "pass one or the other"),
            Bad("app prod --to-version 7", 2, "has never served version 7 alone"),
            Bad("app safe", 3, "no earlier state"),
            Bad("app prod --expect-revision old", 4, "revision"),
        ],
    ),
    "alias rollout abort": Cases([Good("app moving", "aborted")], ROLLOUTS),
    "alias rollout advance": Cases([Good("app moving", "100 %")], ROLLOUTS),
    "alias rollout pause": Cases([Good("app moving", "paused")], ROLLOUTS),
    "alias rollout resume": Cases(
        [Good("app paused", "running")], [*ROLLOUTS, Bad("app moving", 5, "is paused")]
    ),
    "alias rollout show": Cases([Good("app moving", "stage")], ROLLOUTS),
    "alias rollout start": Cases(
        [Good("app prod 2 --stage 5:1h", "5 %")],
        [
            Bad("app prod 2", 2, "Missing option '--stage'"),
            Bad("app prod 2 --stage x", 2, "is not a stage"),
            Bad("app prod 2 --stage 5:1y", 2, "is not a duration"),
            Bad("app prod 2 --stage 50:1h --stage 5:1h", 2, "stage"),
            Bad("app prod 9 --stage 5:1h", 3, "9"),
            Bad("app none 2 --stage 5:1h", 3, "none"),
            Bad("app moving 2 --stage 5:1h", 5, "rollout"),
        ],
    ),
    "alias set": Cases(
        [Good("app new 1", "serves 1"), Good("app new --weights 1=50,2=50", "50 %")],
        [
            Bad("app new", 2, "either a VERSION or --weights"),
            Bad("app new 9", 3, "9"),
            Bad("app new x", 2, "'x'"),
            Bad("app new --weights 1", 2, "must have the form"),
            Bad("app new 1 --secondary 2", 2, "must be given together"),
            Bad("app new 1 --secondary 2 --weight 100", 2, "100"),
            Bad("app safe 2", 5, "--allow-protected"),
            Bad("no-app new 1", 3, "no-app"),
        ],
    ),
    "alias show": Cases(
        [Good("app prod", "serves"), Good("app prod --json", '"alias": "prod"')],
        [*NAMES, Bad("app prod --at tomorrow", 2, "is not a time")],
    ),
    # --- archive ---
    "archive compact": Cases(
        [Good("market", "0 packs")], [*ARCHIVE_MODELS, Bad("market --live-share 2", 2, "range")]
    ),
    "archive export": Cases(
        [Good("market:Order out.gz", "3 items")],
        [
            Bad("market out.gz", 2, "does not name a model"),
            Bad("market:Order none/out.gz", 2, "there is no directory none"),
            Bad("market:Order out.gz --format csv", 2, "'csv'"),
            Bad("market:Order", 2, "TARGET"),
            Bad(f"market:Order {'n' * 300}", 1, "File name too long"),
        ],
    ),
    "archive key": Cases(
        [Good("market:Order customer=ada number=1", "orders/")],
        [
            Bad("market:Order customer=ada", 2, "number"),
            Bad("market:Order customer=ada number=x", 2, "'x'"),
            Bad("market:Order customer", 2, "NAME=VALUE"),
            Bad("market:Order customer=ada number=1 colour=red", 2, "colour"),
            Bad("market:Customer name=ada", 2, "Customer"),
        ],
    ),
    "archive rebuild": Cases([Good("market", "intact")], ARCHIVE_MODELS),
    "archive rekey": Cases([Good("market:Order", "already in place")], ARCHIVE_MODELS),
    "archive report": Cases([Good("market", "market:Order")], ARCHIVE_MODELS[1:]),
    "archive restore": Cases(
        [
            Good("market:Order customer=ada number=1", "1 item restored"),
            Good("market:Order --all", "1 item restored"),
            Good("market:Order customer=ada number=99", "0 items restored"),
            Good("market:Order --keys -", "1 item restored", '{"customer": "ada", "number": 1}'),
        ],
        [
            Bad("market:Order", 2, "--all"),
            Bad("market:Order customer=ada number=1 --all", 2, "--all"),
            Bad("market:Order --keys none", 2, "none"),
            Bad("market:Order --keys small.png", 2, "small.png is not text in UTF-8"),
            Bad("market:Order --keys -", 2, "line 1 is not a JSON object", "[]"),
        ],
    ),
    "archive run": Cases(
        [Good("market --dry-run", "0 of"), Good("market:Order --json", '"archived"')],
        [
            *ARCHIVE_MODELS,
            Bad("market --price table_storage=x", 2, "are not prices"),
            Bad("market --price colour=1", 2, "are not prices"),
            Bad("market --segments 0", 2, "range"),
            Bad("market --rate 0", 2, "range"),
        ],
    ),
    "archive sweep": Cases(
        [
            Good("market --older-than 0s --exclusive --yes", "1 of 2 objects deleted"),
            Good("market --yes", "0 of"),
        ],
        [
            *ARCHIVE_MODELS,
            Bad("market --older-than 1", 2, "is not a duration"),
        ],
    ),
    # --- artifacts ---
    "artifacts delete": Cases(
        [Good("app 3", "deleted"), Good("app 9", "nothing to delete")],
        [
            Bad("app", 2, "VERSION"),
            Bad("app 1", 5, "prod"),
            Bad("app x", 2, "'x'"),
            Bad("app 3 --expect-revision old", 4, "revision"),
        ],
    ),
    "artifacts download": Cases(
        [Good("app prod --to out.txt", "written to out.txt"), Good("app --to -", "four")],
        [
            Bad("app", 2, "--to"),
            Bad("no-app --to out.txt", 3, "no-app"),
            Bad("app 9 --to out.txt", 3, "9"),
            Bad("app none --to out.txt", 3, "none"),
            Bad("app --to none/out.txt", 2, "there is no directory none"),
            Bad("app --to - --json", 2, "--to must be a path"),
        ],
    ),
    "artifacts init": Cases(
        [Good("", "already exists"), Good("--table other --json", '"table_created": true')],
        [Bad("--service none", 2, "none")],
    ),
    "artifacts list": Cases(
        [Good("", "app"), Good("app --json", '"versions"'), Good("no-app", "no-app has no versions")],
        [
            Bad("--tag a=b", 2, "need a NAME"),
            Bad("app --starting-with a", 2, "cannot be combined"),
            Bad("app --tag a", 2, "NAME=VALUE"),
            Bad("app --since x", 2, "is not a time"),
            Bad("--limit x", 2, "'x'"),
        ],
    ),
    "artifacts prune": Cases(
        [Good("app --keep-last 0 --older-than 0s", "kept"), Good("no-app", "0 versions")],
        [
            Bad("", 2, "NAME"),
            Bad("app --keep-last -1", 2, "range"),
            Bad("app --older-than x", 2, "is not a duration"),
            Bad("app --older-than 99999w", 2, "more than a thousand years"),
        ],
    ),
    "artifacts publish": Cases(
        [Good("app --from note.txt", "published"), Good("app --from - --json", '"version"', "typed")],
        [
            Bad("no-app", 3, "no-app"),
            Bad("app --from none.txt", 2, "there is no file none.txt"),
            Bad("app --tag a=b", 2, "need --from"),
            Bad("app --from note.txt --expect-version 9", 4, "9"),
            Bad("a/b --from note.txt", 2, "a/b"),
        ],
    ),
    "artifacts purge": Cases(
        [
            Good("app 3 --yes", "purged"),
            Good("app --dry-run --drop-aliases --allow-protected", "would be purged"),
        ],
        [Bad("", 2, "NAME"), Bad("app 1 --yes", 5, "prod"), Bad("app x --yes", 2, "'x'")],
    ),
    "artifacts put": Cases(
        [Good("app note.txt --metadata a=b", "LATEST"), Good("app - --json", '"sha256"', "typed")],
        [
            Bad("app", 2, "SOURCE"),
            Bad("app none.txt", 2, "there is no file none.txt"),
            Bad("a#b note.txt", 2, "a#b"),
            Bad("app note.txt --metadata a", 2, "NAME=VALUE"),
            Bad("app note.txt --expect-sha256 00", 4, "not as expected"),
        ],
    ),
    "artifacts reindex": Cases([Good("", "artifact")], [Bad("--service none", 2, "none")]),
    "artifacts restore": Cases(
        [Good("app 4", "restored")],
        [Bad("app", 2, "VERSION"), Bad("app 9", 3, "9"), Bad("no-app 1", 3, "no-app")],
    ),
    "artifacts show": Cases(
        [Good("app", "sha256"), Good("app prod --json", '"version": "1"')],
        [Bad("no-app", 3, "no-app"), Bad("app none", 3, "none"), Bad("app 9", 3, "9"), Bad("app 4", 3, "4")],
    ),
    # --- backup ---
    "backup": Cases(
        [Good("saved", "backed up to"), Good("saved --json", '"files"')],
        [
            Bad("", 2, "TARGET"),
            Bad("backup", 2, "backup exists already"),
            Bad("note.txt", 2, "note.txt exists already"),
            Bad("note.txt/saved", 2, "there is no directory"),
            Bad("n" * 230, 2, "cannot be created: File name too long"),
            Bad("saved --url memory:", 2, "memory"),
        ],
    ),
    "restore": Cases(
        [Good("backup --url embedded:second.db", "restored from")],
        [
            Bad("", 2, "SOURCE"),
            Bad("none", 2, "none"),
            Bad("note.txt", 2, "note.txt"),
            Bad("backup", 2, "has the table holdall already"),
            Bad("empty --url embedded:second.db", 2, "is not a complete backup"),
            Bad("backup --url memory:", 2, "is not an embedded database"),
        ],
    ),
    # --- blobs ---
    "blobs analyze": Cases([Good("@blob", "identified")], [Bad("", 2, "ID"), Bad("none", 3, "none")]),
    "blobs attach": Cases(
        [Good("@blob Customer ada notes", "attached to Customer ada as notes")],
        [Bad("@blob Customer ada", 2, "NAME"), Bad("none Customer ada notes", 3, "none")],
    ),
    "blobs check": Cases(
        [Good("", "2 blobs, 1 attachment"), Good("--json", '"findings": []')], [Bad("@blob", 2, "unexpected")]
    ),
    "blobs detach": Cases(
        [
            Good("@attachment Customer ada photo", "detached"),
            Good("none Customer ada photo", "was not attached"),
        ],
        [Bad("@attachment Customer ada", 2, "NAME")],
    ),
    "blobs download": Cases(
        [Good("@blob --to out.txt", "out.txt")],
        [
            Bad("", 2, "ID"),
            Bad("none", 3, "none"),
            Bad("@blob", 4, "note.txt already exists"),
            Bad("@blob --to none/out.txt", 2, "there is no directory none"),
            Bad("@blob --to empty", 2, "empty is a directory"),
        ],
    ),
    "blobs list": Cases(
        [Good("Customer ada", "photo"), Good("Customer bob", "has no attached files")],
        [Bad("Customer", 2, "ID")],
    ),
    "blobs picture": Cases(
        [Good("@image new.png --size 2x2", "image/png")],
        [
            Bad("@image", 2, "TARGET"),
            Bad("@image new.png --size 2", 2, "is not a size"),
            Bad("none new.png", 3, "none"),
            Bad("@blob new.png", 2, "text/plain"),
            Bad("@image none/new.png", 2, "there is no directory none"),
        ],
    ),
    "blobs purge": Cases(
        [Good("@image", "1 blob purged"), Good("@image --later", "will be purged by a worker")],
        [Bad("", 2, "ID"), Bad("none", 3, "none"), Bad("@blob", 5, "kept because of attachments")],
    ),
    "blobs reindex": Cases([Good("", "blobs changed")], [Bad("x", 2, "unexpected")]),
    "blobs show": Cases([Good("@blob", "note.txt")], [Bad("", 2, "ID"), Bad("none", 3, "none")]),
    "blobs sweep": Cases(
        [Good("", "0 blobs"), Good("--dry-run --json", '"blobs": 0')], [Bad("x", 2, "unexpected")]
    ),
    "blobs upload": Cases(
        [Good("note.txt", "text/plain")],
        [
            Bad("", 2, "PATH"),
            Bad("none.txt", 2, "none.txt"),
            Bad("empty", 2, "empty"),
            Bad("note.txt --service none", 2, "none"),
        ],
    ),
    # --- the whole database ---
    "copy": Cases(
        [
            Good("embedded:holdall.db embedded:copy.db", "verified"),
            Good("embedded:holdall.db memory: --dry-run", "S3"),
        ],
        [
            Bad("embedded:holdall.db", 2, "DST"),
            Bad("embedded:none.db embedded:copy.db", 3, "none.db"),
            Bad("mysql://here embedded:copy.db", 2, "is not a database URL"),
            Bad("embedded:holdall.db mysql://here", 2, "is not a database URL"),
            Bad("embedded:holdall.db embedded:holdall.db", 2, "same"),
            Bad("embedded:holdall.db embedded:copy.db --models nothing", 2, "there is no module nothing"),
            Bad("embedded:holdall.db embedded:copy.db --table none", 3, "none"),
        ],
    ),
    "doctor": Cases(
        [Good("--models market", "nothing is wrong"), Good("--json", '"healthy": true')],
        [
            Bad("--only colours", 2, "the checks are"),
            Bad("--yes", 2, "only for --repair"),
            Bad("--repair --json", 2, "--yes"),
            Bad("--models nothing", 2, "there is no module nothing"),
        ],
    ),
    "dump": Cases(
        [Good("--models market", '"customer"')],
        [Bad("--table none", 3, "none"), Bad("--models nothing", 2, "there is no module nothing")],
    ),
    "load": Cases(
        [Good("items.jsonl", "items loaded")],
        [
            Bad("", 2, "FILE"),
            Bad("none.jsonl", 2, "none.jsonl"),
            Bad("-", 2, "line 1", "{\n"),
            Bad("-", 2, "line 1", '{"a": 1}\n'),
        ],
    ),
    "migrate": Cases(
        [Good("market", "brought up to date"), Good("market:Customer --dry-run --json", '"dry_run": true')],
        [
            Bad("", 2, "MODULE"),
            Bad("nothing", 2, "there is no module nothing"),
            Bad("market:None", 2, "market has no model 'None'"),
            Bad("market:Base", 2, "abstract"),
            Bad("market --segments 0", 2, "range"),
        ],
    ),
    # --- items ---
    "items count": Cases(
        [
            Good("market:Order", "3"),
            Good("market:Order customer=ada --where quantity>1", "0"),
            Good("table:holdall", ""),
        ],
        [
            Bad("", 2, "SOURCE"),
            Bad("market", 2, "as in market:Order"),
            Bad("market.Order", 2, "as in market:Order"),
            Bad("market:None", 2, "market has no model 'None'"),
            Bad("market:Order --index by_product", 2, "needs the key"),
            Bad("market:Order customer=ada --index by_product", 2, "customer"),
            Bad("market:Order number=1", 2, "use --sort or --where for other fields"),
            Bad("market:Order --where quantity", 2, "is not a condition"),
            Bad("market:Order --where quantity>x", 2, "'x'"),
            Bad("market:Order --where colour=red", 2, "colour"),
            Bad("table:none", 3, "there is no table none"),
            Bad("table:", 2, "table"),
        ],
    ),
    "items delete": Cases(
        [
            Good("market:Order customer=ada number=2 --yes", "was deleted"),
            Good("table:holdall pk=Customer#ada sk=# --yes", "was deleted"),
        ],
        [
            Bad("market:Order", 2, "NAME=VALUE"),
            Bad("market:Order customer=ada --yes", 2, "number"),
            Bad("market:Order customer=ada number=99 --yes", 3, "there is no Order"),
            Bad("table:holdall pk=x sk=y --yes", 3, "there is no pk=x, sk=y"),
        ],
    ),
    "items get": Cases(
        [
            Good("market:Order customer=ada number=2", "product   tea"),
            Good("table:holdall pk=Customer#ada sk=# --json", '"S": "ada"'),
        ],
        [
            Bad("market:Order", 2, "NAME=VALUE"),
            Bad("market:Order customer=ada number=2 number=3", 2, "given twice"),
            Bad("market:Order customer=ada number=x", 2, "'x'"),
            Bad("market:Order customer=ada number=99", 3, "there is no Order"),
            Bad("market:Base id=1", 2, "abstract"),
            Bad("table:holdall pk=x", 2, "the key of table holdall is pk, sk"),
            Bad("table:holdall pk=x sk=y", 3, "there is no pk=x, sk=y"),
        ],
    ),
    "items put": Cases(
        [
            Good("market:Customer name=eve mail=eve@x", "Customer(name='eve') was written"),
            Good("market:Customer --file -", "was written", '{"name": "eve"}'),
            Good("table:holdall pk=x sk=y n=[1,2] --json", '"L"'),
        ],
        [
            Bad("market:Customer", 2, "but not both"),
            Bad("market:Customer name=ada", 4, "pass --replace"),
            Bad("market:Customer name=eve mail=ada@x", 4, "another item already has"),
            Bad("market:Customer name=eve colour=red", 2, "colour"),
            Bad("market:Order customer=eve number=1", 2, "placed"),
            Bad("market:Order customer=eve number=1 placed=tomorrow", 2, "tomorrow"),
            Bad("market:Customer --file none.json", 2, "none.json"),
            Bad("market:Customer --file -", 2, "JSON", "{"),
            Bad("market:Customer --file -", 2, "name", "{}"),
            Bad("table:holdall --file -", 2, "JSON", "{"),
            Bad("market:Customer --file small.png", 2, "small.png is not text in UTF-8"),
            Bad("table:holdall pk=x sk=y n=1e400", 2, "1E+400"),
            Bad("table:holdall pk=x sk=y n=NaN", 2, "NaN"),
            Bad("table:holdall pk=x", 2, "sk"),
            Bad("table:holdall --file -", 2, "sk", '{"pk": "x"}'),
            Bad("table:holdall --file -", 2, "sk", '{"pk": "x", "sk": 1}'),
            Bad("table:holdall pk=Customer#ada sk=#", 4, "already exists"),
        ],
    ),
    "items query": Cases(
        [
            Good("market:Order customer=ada --sort number>=2 --csv", "ada,2"),
            Good("market:Order product=tea --index by_product --limit 1", "raise --limit"),
            Good("table:holdall pk=Order#ada --only customer,number", "customer"),
        ],
        [
            Bad("market:Order", 2, "NAME=VALUE"),
            Bad("market:Order colour=red", 2, "colour"),
            Bad("market:Order customer=ada --sort quantity>1", 2, "quantity"),
            Bad("market:Order customer=ada --index none", 2, "none"),
            Bad("market:Order customer=ada --only colour", 2, "colour"),
            Bad("market:Order customer=ada --after x", 2, "secret"),
            Bad("market:Order customer=ada --limit 0", 2, "range"),
            Bad("market:Order customer=ada --limit 99999999999999999999", 2, "range"),
            Bad("market:Order customer=ada --json --csv", 2, "--csv"),
            Bad("market:Order customer=ada --where product^", 2, "is not a condition"),
            Bad("table:holdall sk=x", 2, "the partition key is pk"),
            Bad("table:holdall pk=x --index none", 2, "no index none"),
            Bad("table:holdall pk=x --sort other>1", 2, "sk"),
            Bad("table:holdall pk=x --after x", 2, "--after is not a token"),
            Bad("table:holdall pk=x --after e30", 2, "--after is not a token"),
        ],
    ),
    "items scan": Cases(
        [
            Good("market:Order --where quantity=1", "customer"),
            Good("market:Order --json", '"more": false'),
            Good("table:holdall --limit 1", "raise --limit"),
        ],
        [
            Bad("", 2, "SOURCE"),
            Bad("market:Order --where colour=red", 2, "colour"),
            Bad("market:Order --only colour", 2, "colour"),
            Bad("market:Order --after x", 2, "a scan by a model has no pages"),
            Bad("market:Order --json --csv", 2, "--csv"),
            Bad("table:none", 3, "there is no table none"),
        ],
    ),
    "items update": Cases(
        [
            Good("market:Customer name=ada --clear mail", "was written"),
            Good("market:Order customer=ada number=2 --set quantity=5 --json", '"quantity": 5'),
            Good("table:holdall pk=Customer#ada sk=# --set note=x", "was written"),
        ],
        [
            Bad("market:Order customer=ada number=2", 2, "nothing to change"),
            Bad("market:Order customer=ada number=2 --set quantity=x", 2, "'x'"),
            Bad("market:Order customer=ada number=2 --set quantity", 2, "NAME=VALUE"),
            Bad("market:Order customer=ada number=2 --set number=3", 2, "number"),
            Bad("market:Order customer=ada number=2 --clear colour", 2, "colour"),
            Bad("market:Order customer=ada number=2 --clear quantity", 2, "quantity"),
            Bad("market:Order customer=ada number=2 --set quantity=1 --clear quantity", 2, "quantity"),
            Bad("market:Order customer=ada number=99 --set quantity=1", 3, "there is no Order"),
            Bad("table:holdall pk=Customer#ada sk=# --set sk=x", 2, "sk"),
            Bad("table:holdall pk=x sk=y --set n=1", 3, "there is no pk=x, sk=y"),
        ],
    ),
    # --- jobs ---
    "jobs counts": Cases([Good("", "default"), Good("--json", '"queues"')], [Bad("--queue a#b", 2, "a#b")]),
    "jobs delete": Cases([Good("@job", "deleted")], [Bad("", 2, "ID"), Bad("none", 3, "none")]),
    "jobs list": Cases(
        [Good("", "market-work"), Good("--queue none", "no job matches")],
        [Bad("--state lost", 2, "'lost'"), Bad("--limit 0", 2, "range")],
    ),
    "jobs purge": Cases(
        [Good("--state waiting --yes", "2 jobs deleted"), Good("--queue none", "nothing to delete")],
        [
            Bad("--before x", 2, "is not a time"),
            Bad("--older-than x", 2, "is not a duration"),
            Bad("--before 2026-01-01 --older-than 1d", 2, "pass one or the other"),
            Bad("--state running", 2, "'running'"),
        ],
    ),
    "jobs resume": Cases([Good("", "0 jobs resumed")], [Bad("x", 2, "unexpected")]),
    "jobs retry": Cases(
        [Good("@job", "will be retried"), Good("--all", "0 jobs")],
        [
            Bad("", 2, "--all"),
            Bad("@job --all", 2, "--all"),
            Bad("none", 3, "none"),
            Bad("@job --queue x", 2, "--all"),
        ],
    ),
    "jobs show": Cases([Good("@job", "market-work")], [Bad("", 2, "ID"), Bad("none", 3, "none")]),
    # --- models ---
    "models inspect": Cases(
        [Good("foreign", "class Foreign"), Good("foreign --output found.py --class-name Found", "found.py")],
        [
            Bad("", 2, "TABLE"),
            Bad("none", 3, "none"),
            Bad("holdall", 5, "Holdall's own layout"),
            Bad("foreign --class-name lower", 2, "capital letter"),
            Bad("foreign --output note.txt", 4, "already exists"),
            Bad("foreign --output none/x.py", 1, "none/x.py"),
            Bad("foreign --sample 0", 2, "range"),
        ],
    ),
    "models list": Cases(
        [Good("market", "market:Order"), Good("market --json", '"models"')],
        [
            Bad("", 2, "MODULE"),
            Bad("nothing", 2, "there is no module nothing"),
            Bad("json", 2, "defines no models"),
        ],
    ),
    "models move": Cases(
        [
            Good("market:Customer market:Guest", "1 copied"),
            Good("market:Customer market:Guest --convert market:convert", ""),
        ],
        [
            Bad("market:Customer", 2, "DESTINATION"),
            Bad("market market:Guest", 2, "does not name a model"),
            Bad("market:Customer market:None", 2, "market has no model 'None'"),
            Bad("market:Customer market:Customer", 2, "Customer"),
            Bad("market:Customer market:Guest --convert market:none", 2, "no function"),
            Bad("market:Customer market:Guest --where market:convert", 2, "does not name a condition"),
        ],
    ),
    "models show": Cases(
        [Good("market:Order", "partition key"), Good("market:Order --json", '"fields"')],
        [
            Bad("", 2, "MODULE"),
            Bad("market", 2, "does not name a model"),
            Bad("market:work", 2, "no model 'work'"),
        ],
    ),
    "models stubs": Cases(
        [Good("market", "stubs for"), Good("market --output out", "out: stubs for")],
        [
            Bad("", 2, "MODULE"),
            Bad("market:None", 2, "no model 'None'"),
            Bad("market --check", 1, "missing or outdated"),
            Bad("market --output note.txt", 1, "note.txt"),
        ],
    ),
    # --- table ---
    "table create": Cases(
        [
            Good("", "is ready"),
            Good("--models market --json", '"own_tables"'),
            Good("--url embedded:new.db", "is ready"),
        ],
        [
            Bad("--mode C", 2, "'C'"),
            Bad("--mode B", 2, "mode"),
            Bad("--models nothing", 2, "there is no module nothing"),
            Bad("--url embedded:note.txt", 1, "note.txt"),
        ],
    ),
    "table delete": Cases(
        [Good("--yes", "table holdall deleted"), Good("--yes --url embedded:none.db", "nothing to delete")],
        [Bad("holdall", 2, "unexpected")],
    ),
    "table describe": Cases(
        [Good("", "partition key"), Good("--json", '"mode": "A"')],
        [
            Bad("--url embedded:holdall.db?table_name=none", 3, "there is no table none"),
            Bad("x", 2, "unexpected"),
        ],
    ),
    "table export": Cases(
        [Good("--format terraform", "resource"), Good("--format cdk", "import"), Good("--existing", "gsi1")],
        [
            Bad("--format xml", 2, "'xml'"),
            Bad("--mode A --existing", 2, "pass one or the other"),
            Bad("--policy colours", 2, "colours"),
            Bad("--existing --url embedded:none.db", 3, "none.db"),
        ],
    ),
    "table plan": Cases(
        [Good("--models market", "ready")],
        [Bad("", 2, "--models"), Bad("--models nothing", 2, "there is no module nothing")],
    ),
    "table policy": Cases(
        [Good("reads jobs", '"Statement"')],
        [Bad("", 2, "FEATURE"), Bad("colours", 2, "colours"), Bad("reads --account x", 2, "x")],
    ),
    "table remove-index": Cases(
        [Good("gsi1 --yes", "index gsi1 removed"), Good("none", "nothing to remove")],
        [
            Bad("", 2, "NAME"),
            Bad("gsi1 --models market --yes", 2, "Order needs it"),
            Bad("gsi1 --table none --yes", 3, "none"),
        ],
    ),
    # --- programs ---
    "completion": Cases(
        [Good("bash", "_HOLDALL_COMPLETE")], [Bad("", 2, "{bash|zsh|fish}"), Bad("tcsh", 2, "tcsh")]
    ),
    "serve": Cases(
        [],  # runs until it is stopped: test_cli_serve
        [
            Bad("--port 70000", 2, "range"),
            Bad("--port x", 2, "'x'"),
            Bad("--token short", 2, "16"),
            Bad("--models nothing", 2, "there is no module nothing"),
        ],
    ),
    "worker": Cases(
        [Good("--drain --queue none", "done: 0 jobs started")],
        [
            Bad("nothing", 2, "there is no module nothing"),
            Bad("market --hook market:none", 2, "no function"),
            Bad("--concurrency 0", 2, "range"),
            Bad("--queue a#b --drain", 2, "a#b"),
        ],
    ),
}
