"""Profiles: read from the two shared files as the AWS tools read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aws_secrecy import SECRET, TOKEN, assert_shows_no_secret
from hypothesis import given
from hypothesis import strategies as st

from holdall.backends.aws.profile import Profile, read_profile
from holdall.errors import ConfigurationError


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".aws").mkdir()
    return tmp_path


def write_profile(home: Path, *, config: str | None = None, credentials: str | None = None) -> dict[str, str]:
    for name, text in (("config", config), ("credentials", credentials)):
        if text is not None:
            (home / ".aws" / name).write_text(text, encoding="utf-8")
    return {"HOME": str(home)}


CONFIG = """
# a comment
[default]
Region = eu-north-1

[profile dev]
region=eu-west-1
s3 =
    use_dualstack_endpoint = true
    addressing_style = path
services = local

[profile "two words"]
region = us-west-2

[services local]
dynamodb =
  endpoint_url = http://localhost:8000

[sso-session corp]
sso_region = us-east-1
"""


def test_a_profile_is_found_by_argument_environment_or_default(home: Path) -> None:
    environment = write_profile(home, config=CONFIG)
    assert read_profile(None, environment).get("region") == "eu-north-1"
    assert read_profile("dev", environment).get("region") == "eu-west-1"
    assert read_profile("two words", environment).get("region") == "us-west-2"
    for variable in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        assert read_profile(None, {**environment, variable: "dev"}).get("region") == "eu-west-1"
        assert read_profile("two words", {**environment, variable: "dev"}).name == "two words"


def test_nested_settings_of_indented_blocks_and_services_are_found(home: Path) -> None:
    profile = read_profile("dev", write_profile(home, config=CONFIG))
    assert profile.find_nested(profile.config, "s3", "use_dualstack_endpoint") == "true"
    assert profile.find_nested(profile.services, "dynamodb", "endpoint_url") == "http://localhost:8000"
    assert profile.find_nested(profile.services, "s3", "endpoint_url") is None
    assert profile.get("s3") is None


def test_the_credentials_file_takes_precedence_and_its_sections_have_no_prefix(home: Path) -> None:
    environment = write_profile(
        home,
        config="[profile dev]\nregion=a\noutput=json\n",
        credentials="[dev]\nregion=b\n[only]\nregion=c\n",
    )
    assert read_profile("dev", environment).get("region") == "b"
    assert read_profile("dev", environment).get("output") == "json"
    assert read_profile("only", environment).get("region") == "c"


def test_the_environment_can_name_other_files(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("[default]\nregion = there\n")
    for name in (str(tmp_path / "elsewhere"), "~/elsewhere", "$PLACE/elsewhere"):
        environment = {"HOME": str(tmp_path), "PLACE": str(tmp_path), "AWS_CONFIG_FILE": name}
        assert read_profile(None, environment).get("region") == "there"


def test_a_setting_in_the_environment_takes_precedence(home: Path) -> None:
    profile = read_profile("dev", write_profile(home, config=CONFIG))
    assert profile.find_setting("region", {"AWS_REGION": "x"}) == "x"
    assert profile.find_setting("region", {"AWS_REGION": ""}) == "eu-west-1"
    assert profile.find_setting("color", {}) is None


def test_without_files_the_default_profile_is_empty_and_says_why(home: Path) -> None:
    profile = read_profile(None, {"HOME": str(home)})
    assert (profile.name, dict(profile.config), dict(profile.credentials)) == ("default", {}, {})
    assert profile.notes == tuple(
        f"{home / '.aws' / name} does not exist" for name in ("credentials", "config")
    )


def test_an_unreadable_file_is_skipped_and_the_reason_noted(home: Path) -> None:
    (home / ".aws" / "config").mkdir()
    assert "config cannot be read" in read_profile(None, {"HOME": str(home)}).notes[1]


@pytest.mark.parametrize("named_by", ["argument", "AWS_PROFILE"])
def test_a_missing_named_profile_is_an_error_that_lists_the_files(home: Path, named_by: str) -> None:
    environment = write_profile(home, config=CONFIG)
    name = "prod" if named_by == "argument" else None
    with pytest.raises(ConfigurationError, match="no AWS profile 'prod'") as refusal:
        read_profile(name, {**environment, "AWS_PROFILE": "prod"})
    assert f"{home / '.aws' / 'credentials'} does not exist" in str(refusal.value)
    assert f"{home / '.aws' / 'config'} has no profile 'prod'" in str(refusal.value)


def test_a_named_services_section_must_exist(home: Path) -> None:
    environment = write_profile(home, config="[default]\nservices = nowhere\n")
    with pytest.raises(ConfigurationError, match=r"services section 'nowhere'.*\n.*\[services nowhere\]"):
        read_profile(None, environment)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (f"aws_secret_access_key = {SECRET}\n".encode(), "line 1 is neither"),
        (f"[default]\n\n{SECRET}\n".encode(), "line 3 is neither"),
        (f"[default]\na = {SECRET}\na = {TOKEN}\n".encode(), "line 3 repeats"),
        (f"[default]\na = {SECRET}\n[default]\n".encode(), "line 3 repeats"),
        (f"[default]\nb =\n  {SECRET}\n".encode(), "indented block"),
        (f"[default]\na = {SECRET}\nb = ".encode() + b"\xff\n", "line 3 is not UTF-8"),
    ],
)
@pytest.mark.parametrize("file", ["credentials", "config"])
def test_the_error_of_a_malformed_file_names_the_line_and_does_not_quote_it(
    home: Path, file: str, content: bytes, why: str
) -> None:
    (home / ".aws" / file).write_bytes(content)
    with pytest.raises(ConfigurationError, match=why) as refusal:
        read_profile(None, {"HOME": str(home)})
    assert str(home / ".aws" / file) in str(refusal.value)
    assert_shows_no_secret(refusal.value)


def test_a_profile_does_not_show_its_settings(home: Path) -> None:
    profile = read_profile(
        None, write_profile(home, credentials=f"[default]\naws_secret_access_key = {SECRET}\n")
    )
    assert profile.get("aws_secret_access_key") == SECRET
    assert SECRET not in f"{profile} {profile!r}"
    assert isinstance(profile, Profile)


names = st.sampled_from(["region", "role_arn", "output", "s3"])
values = st.sampled_from(["a", "b = c", "", "\n  x = 1\n  y = 2", "# no comment", "%(region)s"])
sections = st.sampled_from(
    [
        "default",
        "profile dev",
        "profile default",
        'profile "dev"',
        "dev",
        "services dev",
        "profile",
        "other x y",
    ]
)
files = st.dictionaries(sections, st.dictionaries(names, values))


def as_text(file: dict[str, dict[str, str]]) -> str:
    return "".join(
        f"[{section}]\n" + "".join(f"{name} = {value}\n" for name, value in settings.items())
        for section, settings in file.items()
    )


@given(config=files, credentials=files, name=st.sampled_from(["default", "dev"]))
def test_profiles_are_read_as_botocore_reads_them(
    tmp_path_factory: pytest.TempPathFactory,
    config: dict[str, dict[str, str]],
    credentials: dict[str, dict[str, str]],
    name: str,
) -> None:
    session_module: Any = pytest.importorskip(
        "botocore.session", reason="botocore, whose profiles this test compares, is not installed"
    )
    folder = tmp_path_factory.getbasetemp()
    (folder / "config").write_text(as_text(config))
    (folder / "credentials").write_text(as_text(credentials))
    environment = {
        "AWS_CONFIG_FILE": str(folder / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"),
    }
    session = session_module.Session()
    session.set_config_variable("config_file", environment["AWS_CONFIG_FILE"])
    session.set_config_variable("credentials_file", environment["AWS_SHARED_CREDENTIALS_FILE"])
    theirs = session.full_config["profiles"].get(name)
    if theirs is None:
        with pytest.raises(ConfigurationError, match="no AWS profile"):
            read_profile(name, environment)
    else:
        ours = read_profile(name, environment)
        assert {**ours.config, **ours.credentials} == theirs
