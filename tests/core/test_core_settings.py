"""Settings: which source takes precedence, and which values are refused."""

from __future__ import annotations

from typing import Any

import pytest

from holdall.core.settings import NAMES, Settings, resolve
from holdall.errors import ConfigurationError

FILE = {"url": "embedded:from-file.db", "durability": "normal"}
ENVIRONMENT = {"HOLDALL_URL": "embedded:from-environment.db", "HOLDALL_DURABILITY": "full"}
EXAMPLES = {
    "durability": ("normal", "full"),
    "table_name": ("first-table", "second-table"),
    "partition_key": ("first", "second"),
    "sort_key": ("first", "second"),
    "namespace": ("First", "Second"),
    "separator": ("|", "/"),
    "index_name": ("first-index", "second-index"),
    "index_partition_key": ("first", "second"),
    "index_sort_key": ("first", "second"),
    "manage_table": ("true", "false"),
    "region": ("eu-central-1", "us-east-1"),
    "endpoint": ("http://first:1", "http://second:2"),
    "profile": ("first", "second"),
    "single_writes": ("token", "auto"),
    "connect_timeout": ("1.5", "2"),
    "read_timeout": ("1.5", "2"),
    "total_timeout": ("1.5", "2"),
    "max_attempts": ("3", "4"),
    "max_connections": ("3", "4"),
    "table_prefix": ("first", "second"),
    "reads": ("daxs://first", "dax://second:8111"),
    "files": ("file:first", "memory:"),
    "default_service": ("first", "second"),
    "tracebacks": ("full", "short"),
}
TEXTS = sorted(
    EXAMPLES.keys()
    - {"manage_table", "connect_timeout", "read_timeout", "total_timeout", "max_attempts", "max_connections"}
)
NUMBERS = ["connect_timeout", "read_timeout", "total_timeout", "max_attempts", "max_connections"]
ONLY_DYNAMODB = ["endpoint", "profile", "reads", "region", "single_writes", *NUMBERS]
ALL_NAMES = ", ".join(sorted({"url", "secret", *EXAMPLES}))


def text_or_truth(name: str, text: str) -> object:
    """A setting as it is passed as an argument."""
    return text == "true" if name == "manage_table" else text


def parse_setting(name: str, text: str) -> object:
    """The parsed value of a setting."""
    if name in NUMBERS:
        return float(text) if name.endswith("_timeout") else int(text)
    return (("default", text),) if name == "files" else text_or_truth(name, text)


def test_without_settings_the_store_is_a_durable_file_in_the_working_directory() -> None:
    files = (("default", "file:holdall-files"),)
    usual = Settings("embedded:holdall.db", "embedded", "holdall.db", "full", files=files)
    assert resolve({}, {}, {}) == usual
    assert resolve({"url": None, "durability": None}, {}, {}) == resolve({}, {}, {})


def test_the_default_names_follow_active_storage() -> None:
    settings = resolve({}, {}, {})
    assert (settings.namespace, settings.separator) == ("ActiveStorage", "#")
    assert (settings.table_name, settings.index_name) == ("holdall", "active_storage_index")
    assert (settings.partition_key, settings.index_partition_key) == (None, None)


def test_every_setting_has_an_example_here() -> None:
    assert EXAMPLES.keys() | {"secret"} == NAMES


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", ["", "many", "0", "-1", "nan", "inf", "1e9", True, None.__class__, [1]])
def test_an_invalid_number_is_refused(name: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=name):
        resolve({}, {}, {name: value})


def test_a_fractional_number_of_connections_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="max_connections"):
        resolve({}, {}, {"max_connections": 2.5})


def test_secrets_can_come_from_any_source_but_the_url() -> None:
    old, new = "old-secret-123456", "new-secret-123456"
    assert resolve({"secret": new}, {"HOLDALL_SECRET": old}, {}).secret == (new,)
    assert resolve({"secret": [new, old]}, {}, {}).secret == (new, old)
    assert resolve({}, {"HOLDALL_SECRET": f"{new} {old}"}, {}).secret == (new, old)
    assert resolve({}, {}, {"secret": [new, old]}).secret == (new, old)
    with pytest.raises(
        ConfigurationError, match=r"the URL's query has settings that do not apply .*: secret"
    ):
        resolve({"url": f"memory:?secret={new}"}, {}, {})


@pytest.mark.parametrize("secret", ["", "short", ["long-enough-secret", "short"], 17, [17]])
def test_a_short_secret_is_refused_and_secrets_are_never_shown(secret: object) -> None:
    with pytest.raises(ConfigurationError, match=r"argument secret (is too short|must be)") as caught:
        resolve({"secret": secret}, {}, {})
    assert "short" not in str(caught.value).replace("too short", "")
    assert "a-good-long-secret" not in repr(resolve({"secret": "a-good-long-secret"}, {}, {}))


# --- file services --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "files"),
    [
        ("embedded:holdall.db", {"default": "file:holdall-files"}),
        ("embedded:/var/lib/shop.db", {"default": "file:/var/lib/shop-files"}),
        ("embedded:data/shop.sqlite", {"default": "file:data/shop.sqlite-files"}),
        ("embedded:with%20space%3F.db", {"default": "file:with%20space%3F-files"}),
        ("memory:", {"default": "memory:"}),
        ("dynamodb://my-app", {}),
    ],
)
def test_by_default_files_are_beside_the_store_in_memory_or_nowhere(url: str, files: dict[str, str]) -> None:
    assert dict(resolve({"url": url}, {}, {}).files) == files


def test_services_keep_their_names_and_order_and_a_single_url_is_the_default_service() -> None:
    named = {
        "main": "s3://bucket/prefix?region=eu-central-1",
        "a.b_c-1": "file:x",
        "both": "mirror:main,a.b_c-1",
    }
    assert resolve({"files": named}, {}, {}).files == tuple(named.items())
    assert resolve({}, {}, {"files": named}).files == tuple(named.items())
    assert resolve({}, {"HOLDALL_FILES": "memory:"}, {"files": named}).files == (("default", "memory:"),)
    assert resolve({"url": "embedded:a.db?files=file:here"}, {}, {}).files == (("default", "file:here"),)
    assert resolve({"files": {}}, {}, {"files": named}).files == ()


@pytest.mark.parametrize("name", ["", "with space", "a/b", "ü", "-a", "x" * 101, 5])
def test_an_invalid_service_name_is_refused(name: object) -> None:
    with pytest.raises(ConfigurationError, match="argument files has an invalid service name"):
        resolve({"files": {name: "memory:"}}, {}, {})


@pytest.mark.parametrize("url", ["", "memory", "s3:bucket", "disk:x", "ftp://x", 5, None, ["memory:"]])
def test_an_invalid_service_url_is_refused(url: object) -> None:
    with pytest.raises(ConfigurationError, match="the service main must be") as caught:
        resolve({}, {}, {"files": {"main": url}})
    assert "file:PATH" in str(caught.value)


def test_an_error_does_not_show_the_user_name_and_password_of_a_url() -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve({"files": {"main": "ftp://name:password@host"}}, {}, {})
    assert "password" not in str(caught.value)


def test_the_url_comes_from_the_argument_before_the_environment_before_the_file() -> None:
    assert resolve({}, {}, FILE).path == "from-file.db"
    assert resolve({}, ENVIRONMENT, FILE).path == "from-environment.db"
    assert resolve({"url": "embedded:from-argument.db"}, ENVIRONMENT, FILE).path == "from-argument.db"


def test_other_settings_come_from_the_argument_before_the_urls_query_before_the_environment() -> None:
    query = {"url": "embedded:a.db?durability=normal"}
    assert resolve({}, {}, {"durability": "normal"}).durability == "normal"
    assert resolve({}, ENVIRONMENT, FILE).durability == "full"
    assert resolve(query, ENVIRONMENT, {}).durability == "normal"
    assert (
        resolve({**query, "durability": "full"}, {"HOLDALL_DURABILITY": "normal"}, FILE).durability == "full"
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_setting_can_come_from_any_source_in_order_of_precedence(name: str) -> None:
    first, second = EXAMPLES[name]
    variable = f"HOLDALL_{name.upper()}"
    url = "dynamodb://a-table" if name in ONLY_DYNAMODB else "embedded:a.db"
    query = f"{url}?{name}={first}"

    def find_settings(
        url: str, environment: dict[str, str], file: dict[str, object], **arguments: object
    ) -> object:
        return getattr(resolve({"url": url, **arguments}, environment, file), name)

    assert find_settings(url, {}, {name: first}) == parse_setting(name, first)
    assert find_settings(url, {variable: first}, {name: second}) == parse_setting(name, first)
    assert find_settings(query, {variable: second}, {name: second}) == parse_setting(name, first)
    argument = text_or_truth(name, second)
    assert find_settings(query, {variable: first}, {name: first}, **{name: argument}) == parse_setting(
        name, second
    )


def test_the_query_of_a_url_applies_whatever_the_source_of_the_url() -> None:
    assert resolve({}, {"HOLDALL_URL": "memory:?durability=normal"}, {}).durability == "normal"
    assert resolve({}, {}, {"url": "memory:?durability=normal"}).durability == "normal"


@pytest.mark.parametrize(
    ("url", "scheme", "path"),
    [
        ("memory:", "memory", None),
        ("memory:?durability=full", "memory", None),
        ("embedded:app.db", "embedded", "app.db"),
        ("embedded:/var/lib/app.db", "embedded", "/var/lib/app.db"),
        ("embedded:data/app.db?durability=normal", "embedded", "data/app.db"),
        ("embedded:with%20space%3F.db", "embedded", "with space?.db"),
        ("embedded:C:/app.db", "embedded", "C:/app.db"),
        ("embedded:a#b.db", "embedded", "a#b.db"),
        ("dynamodb://my-app", "dynamodb", None),
        ("dynamodb://my-app?region=eu-central-1", "dynamodb", None),
    ],
)
def test_a_url_has_a_scheme_and_optionally_a_path(url: str, scheme: str, path: str | None) -> None:
    settings = resolve({"url": url}, {}, {})
    assert (settings.url, settings.scheme, settings.path) == (url, scheme, path)


def test_a_dynamodb_url_has_the_case_sensitive_table_name_region_endpoint_and_profile() -> None:
    url = "dynamodb://My_App.v2?region=eu-central-1&endpoint=http%3A%2F%2Flocalhost%3A8000&profile=dev"
    settings = resolve({"url": url}, {}, {})
    assert settings.table_name == "My_App.v2"
    assert (settings.region, settings.endpoint) == ("eu-central-1", "http://localhost:8000")
    assert (settings.profile, settings.single_writes) == ("dev", "auto")


def test_an_endpoint_in_a_url_need_not_be_encoded() -> None:
    url = "dynamodb://my-app?endpoint=http://localhost:8000&region=local"
    assert resolve({"url": url}, {}, {}).endpoint == "http://localhost:8000"


def test_the_table_name_comes_from_the_argument_before_the_url_before_the_environment() -> None:
    environment = {"HOLDALL_TABLE_NAME": "from-environment"}
    url = "dynamodb://from-url"
    assert resolve({"url": url}, environment, {}).table_name == "from-url"
    assert resolve({"url": url, "table_name": "from-argument"}, environment, {}).table_name == "from-argument"


@pytest.mark.parametrize(
    ("url", "managed"), [("memory:", True), ("embedded:a.db", True), ("dynamodb://my-app", False)]
)
def test_by_default_an_embedded_table_is_managed_and_one_in_dynamodb_is_not(url: str, managed: bool) -> None:
    assert resolve({"url": url}, {}, {}).manage_table is managed
    assert resolve({"url": url, "manage_table": not managed}, {}, {}).manage_table is not managed


@pytest.mark.parametrize(
    ("text", "expected"), [("true", True), ("True", True), ("1", True), ("FALSE", False), ("0", False)]
)
def test_a_boolean_is_parsed_from_the_environment_or_the_url(text: str, expected: bool) -> None:
    assert resolve({}, {"HOLDALL_MANAGE_TABLE": text}, {}).manage_table is expected
    assert resolve({"url": f"dynamodb://my-app?manage_table={text}"}, {}, {}).manage_table is expected


@pytest.mark.parametrize(
    ("arguments", "environment", "file", "problem"),
    [
        ({"manage_table": 1}, {}, {}, "argument manage_table must be true or false, not int"),
        ({"url": "memory:?manage_table"}, {}, {}, "manage_table in the URL must be true or false, not ''"),
        (
            {},
            {"HOLDALL_MANAGE_TABLE": "maybe"},
            {},
            "HOLDALL_MANAGE_TABLE must be true or false, not 'maybe'",
        ),
        ({}, {}, {"manage_table": 0}, r"manage_table in holdall\.toml must be true or false, not int"),
    ],
)
def test_an_invalid_boolean_is_refused(arguments: Any, environment: Any, file: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        resolve(arguments, environment, file)


@pytest.mark.parametrize(
    "url", ["holdall.db", "sqlite:x.db", "Embedded:x.db", ":x", " memory:", "postgres://x", "dynamo://x"]
)
def test_an_unknown_scheme_is_refused_with_the_known_ones(url: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a database URL") as caught:
        resolve({"url": url}, {}, {})
    assert caught.value.hint == "use one of: embedded:PATH, memory:, dynamodb://TABLE"


@pytest.mark.parametrize(
    "url",
    [
        "memory:x",
        "memory://",
        "embedded:",
        "embedded:?durability=full",
        "dynamodb:",
        "dynamodb:my-app",
        "dynamodb:/my-app",
        "dynamodb://",
        "dynamodb://?region=eu-central-1",
        "dynamodb://my-app/",
        "dynamodb://host/my-app",
    ],
)
def test_a_url_that_does_not_have_the_form_of_its_scheme_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="must have the form"):
        resolve({"url": url}, {}, {})


@pytest.mark.parametrize("scheme", ["dynamodb", "dynamo"])
def test_credentials_in_a_url_are_refused_and_not_repeated(scheme: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve({"url": f"{scheme}://AKIDEXAMPLE:hush@my-app?region=eu-central-1"}, {}, {})
    assert "hush" not in str(caught.value)
    assert "AKIDEXAMPLE" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "environment", "file", "source"),
    [
        ({"durability": "fast"}, {}, {}, "argument durability must be full or normal, not 'fast'"),
        (
            {"url": "memory:?durability=fast"},
            {},
            {},
            "durability in the URL must be full or normal, not 'fast'",
        ),
        ({"url": "memory:?durability"}, {}, {}, "durability in the URL must be full or normal, not ''"),
        (
            {},
            {"HOLDALL_DURABILITY": "fast"},
            {},
            "environment variable HOLDALL_DURABILITY must be full or normal, not 'fast'",
        ),
        ({}, {}, {"durability": "fast"}, "durability in holdall.toml must be full or normal, not 'fast'"),
        ({}, {}, {"durability": ""}, "durability in holdall.toml must be full or normal, not ''"),
    ],
)
def test_the_error_of_an_invalid_value_names_its_source(
    arguments: Any, environment: Any, file: Any, source: str
) -> None:
    with pytest.raises(ConfigurationError, match=source):
        resolve(arguments, environment, file)


def test_single_writes_must_be_auto_or_token() -> None:
    with pytest.raises(ConfigurationError, match="URL must be auto or token, not 'twice'"):
        resolve({"url": "dynamodb://my-app?single_writes=twice"}, {}, {})


@pytest.mark.parametrize("name", ["url", *TEXTS])
@pytest.mark.parametrize("content", [5, True, ["full"]])
def test_a_setting_in_the_file_must_be_text(name: str, content: object) -> None:
    with pytest.raises(
        ConfigurationError, match=f"{name} in holdall.toml must be .*, not {type(content).__name__}"
    ):
        resolve({}, {}, {name: content})


@pytest.mark.parametrize(
    "name", sorted({"url", *TEXTS} - {"durability", "files", "single_writes", "tracebacks"})
)
def test_an_empty_setting_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"HOLDALL_{name.upper()} is empty"):
        resolve({}, {f"HOLDALL_{name.upper()}": ""}, {})


@pytest.mark.parametrize("name", ["table_name", "index_name"])
@pytest.mark.parametrize("text", ["ab", "with space", "a/b", "x" * 256])
def test_an_invalid_name_of_a_table_or_index_is_refused(name: str, text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be the name of an? (table|index)"):
        resolve({name: text}, {}, {})


@pytest.mark.parametrize("prefix", ["a b", "a/", "x" * 253])
def test_an_invalid_table_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot begin the name of a table") as caught:
        resolve({"table_prefix": prefix}, {}, {})
    assert caught.value.hint == "use up to 252 of the characters A-Z a-z 0-9 _ - ."


def test_an_invalid_table_name_in_a_url_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'a%b' cannot be the name of a table"):
        resolve({"url": "dynamodb://a%25b"}, {}, {})


@pytest.mark.parametrize(("namespace", "separator"), [("A#B", "#"), ("ActiveStorage", "e")])
def test_a_namespace_that_contains_the_separator_is_refused(namespace: str, separator: str) -> None:
    with pytest.raises(ConfigurationError, match="contains the separator"):
        resolve({"namespace": namespace, "separator": separator}, {}, {})


def test_an_unknown_name_in_the_file_is_refused() -> None:
    with pytest.raises(
        ConfigurationError, match=r"holdall\.toml has unknown settings: durabilty\n"
    ) as caught:
        resolve({}, {}, {"durabilty": "full"})
    assert caught.value.hint == "did you mean 'durability'?"
    with pytest.raises(ConfigurationError) as caught:
        resolve({}, {}, {"xyz": "full"})
    assert caught.value.hint == f"the settings are: {ALL_NAMES}"


def test_an_unknown_argument_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="the call has unknown settings: durabilty"):
        resolve({"durabilty": "full"}, {}, {})


@pytest.mark.parametrize("query", ["mode=fast", "url=memory:", "durability=full&mode=fast", "mode"])
def test_an_unknown_name_in_the_urls_query_is_refused(query: str) -> None:
    with pytest.raises(ConfigurationError, match=r"the URL's query has unknown settings: (mode|url)\n"):
        resolve({"url": f"memory:?{query}"}, {}, {})


@pytest.mark.parametrize(
    ("url", "name"),
    [
        *((f"{url}?{name}=x", name) for url in ("memory:", "embedded:a.db") for name in ONLY_DYNAMODB),
        ("dynamodb://my-app?durability=full", "durability"),
        ("dynamodb://my-app?table_name=another", "table_name"),
    ],
)
def test_a_setting_that_does_not_apply_to_the_scheme_is_refused_in_a_url(url: str, name: str) -> None:
    with pytest.raises(
        ConfigurationError, match=f"has settings that do not apply to this kind of URL: {name}"
    ):
        resolve({"url": url}, {}, {})


def test_the_environment_can_contain_settings_of_both_kinds_of_database() -> None:
    environment = {"HOLDALL_REGION": "eu-central-1", "HOLDALL_DURABILITY": "normal"}
    assert resolve({"url": "memory:"}, environment, {}).durability == "normal"
    assert resolve({"url": "dynamodb://my-app"}, environment, {}).region == "eu-central-1"


def test_other_environment_variables_are_ignored() -> None:
    environment = {"PATH": "/bin", "DURABILITY": "fast", "HOLDALL_SEED": "1", "holdall_url": "x"}
    assert resolve({}, environment, {}) == resolve({}, {}, {})


def test_a_source_without_precedence_is_not_checked() -> None:
    assert resolve({"durability": "normal"}, {"HOLDALL_DURABILITY": "fast"}, {}).durability == "normal"
