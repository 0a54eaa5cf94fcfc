"""Names, keys, and the values that represent artifacts and aliases."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall.artifacts import Alias, Artifact, encode_alias_pk, encode_version_sk
from holdall.artifacts.alias.alias import arms_of, is_plain, two_arms
from holdall.artifacts.name import check_alias, check_name, check_new_name, display_version, is_version
from holdall.artifacts.record import parse_moment, show_moment
from holdall.errors import InvalidAliasError, InvalidArtifactError, InvalidOptionsError, InvalidWeightError

# --- versions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "sk"),
    [
        (None, "LATEST"),
        ("LATEST", "LATEST"),
        (1, "000001"),
        ("1", "000001"),
        ("000001", "000001"),
        ("0" * 30 + "1", "000001"),
        (42, "000042"),
        ("42", "000042"),
        (999999, "999999"),
    ],
)
def test_a_version_has_the_sort_key_that_versioned_gives_it(version: Any, sk: str) -> None:
    assert encode_version_sk(version) == sk


@pytest.mark.parametrize(
    "version",
    [
        0,
        -1,
        1_000_000,
        "0",
        "abc",
        "latest",
        "1.0",
        "",
        " 1",
        "١",
        True,
        1.5,
        "0LATEST",
        "9" * 5000,
        f"{7 * 10**24 + 1}",
    ],
)
def test_an_invalid_version_is_refused(version: Any) -> None:
    with pytest.raises(InvalidArtifactError, match="is not a version") as caught:
        encode_version_sk(version)
    assert isinstance(caught.value, ValueError)


@given(st.integers(1, 999_999), st.integers(1, 999_999))
def test_sort_keys_sort_like_their_numbers_with_latest_last(one: int, other: int) -> None:
    assert (encode_version_sk(one) < encode_version_sk(other)) == (one < other)
    assert encode_version_sk(one) < "LATEST"
    assert display_version(encode_version_sk(one)) == str(one)


@pytest.mark.parametrize("name", ["my-app", "under_score", "dot.ted", "a"])
def test_the_aliases_of_an_artifact_have_their_own_partition(name: str) -> None:
    assert encode_alias_pk(name) == f"__{name}-alias"


@pytest.mark.parametrize(
    ("reference", "expected"), [(None, True), (7, True), ("7", True), ("LATEST", True), ("prod", False)]
)
def test_a_reference_is_a_version_or_an_alias(reference: Any, expected: bool) -> None:
    assert is_version(reference) is expected


# --- names ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["my-app", "frontend.v2", "Modèle", "日本", "a b", "x" * 512])
def test_any_portable_text_is_a_name(name: str) -> None:
    assert check_new_name(name) == name


@pytest.mark.parametrize("name", ["", "__x-alias", "__x", None, 5, "x" * 513, "\ud800", "é" * 300])
def test_an_impossible_name_is_refused_even_for_reading(name: Any) -> None:
    with pytest.raises(InvalidArtifactError):
        check_name(name)


@pytest.mark.parametrize(
    "name", ["a/b", "a//b", "/a", "a#b", "a\nb", "..", ".", " a", "a ", "a\\b", "a\u2028b"]
)
def test_a_name_that_other_programs_can_make_can_be_read_but_not_created(name: str) -> None:
    assert check_name(name) == name
    with pytest.raises(InvalidArtifactError):
        check_new_name(name)


@pytest.mark.parametrize("alias", ["prod", "blue-green", "canary.2", "v1", "1a", "Produktion", "x" * 128])
def test_an_alias_may_have_hyphens(alias: str) -> None:
    assert check_alias(alias) == alias


@pytest.mark.parametrize(
    "alias",
    ["", "1", "000001", "LATEST", "latest", "Latest", "a/b", "a#b", "..\n", " a", "x" * 129, None, "٣"],
)
def test_an_invalid_or_ambiguous_alias_is_refused(alias: Any) -> None:
    with pytest.raises(InvalidAliasError) as caught:
        check_alias(alias)
    assert isinstance(caught.value, ValueError)


# --- values -----------------------------------------------------------------------------------------------


def test_a_new_artifact_is_latest_unless_it_has_a_version() -> None:
    assert (Artifact.new("my-app").pk, Artifact.new("my-app").sk) == ("my-app", "LATEST")
    assert Artifact.new("my-app", None).version == "LATEST"
    assert Artifact.new("my-app", 5).sk == "000005"
    assert Artifact.new("my-app", "42").sk == "000042"
    assert Artifact.new("my-app", 5).number == 5
    assert Artifact.new("my-app").number is None


def test_an_artifact_as_a_dict_has_the_form_of_versioned() -> None:
    artifact = Artifact.new("my-app", 5)
    assert artifact.to_dict() == {"name": "my-app", "version": "5", "update_at": None, "sha256": None}
    assert artifact.is_deleted is False


def test_a_new_alias_has_padded_versions_and_readable_ones_in_its_dict() -> None:
    alias = Alias.new("my-app", "prod", version=5, secondary_version=6, secondary_version_weight=20)
    assert (alias.pk, alias.sk) == ("__my-app-alias", "prod")
    assert (alias.version, alias.secondary_version, alias.secondary_version_weight) == (
        "000005",
        "000006",
        20,
    )
    assert (alias.name, alias.alias) == ("my-app", "prod")
    assert alias.to_dict() == {
        "name": "my-app",
        "alias": "prod",
        "update_at": alias.update_at,
        "version": "5",
        "secondary_version": "6",
        "secondary_version_weight": 20,
    }
    assert alias.update_at.tzinfo is UTC


def test_a_new_alias_points_to_latest() -> None:
    alias = Alias.new("my-app", "prod")
    assert alias.to_dict()["version"] == "LATEST"
    assert alias.to_dict()["secondary_version"] is None
    assert alias.resolve(key="ada") == "LATEST"


@pytest.mark.parametrize("name", ["a", "my-app", "a-b-c-alias", "x-meta"])
def test_an_alias_knows_its_artifact_even_if_the_name_has_hyphens(name: str) -> None:
    assert Alias.new(name, "prod").name == name


@pytest.mark.parametrize("weight", [None, 0.5, True, "20"])
def test_a_weight_that_is_not_an_integer_raises_a_type_error_too(weight: Any) -> None:
    with pytest.raises(InvalidWeightError) as caught:
        Alias.new("my-app", "prod", 1, 2, weight)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "arguments",
    [
        (1, 2, 100),
        (1, 2, -1),
        (1, 1, 20),
        (1, "000001", 20),
        (1, None, 20),
        (None, 1, 20),
        (1, "LATEST", 20),
    ],
)
def test_an_invalid_split_is_refused(arguments: tuple[Any, Any, Any]) -> None:
    with pytest.raises(InvalidAliasError):
        Alias.new("my-app", "prod", *arguments)


@pytest.mark.parametrize(
    "weights",
    [{}, {1: 0}, {1: 50, "1": 50}, {1: 50, "LATEST": 50}, {1: -1, 2: 5}, dict.fromkeys(range(1, 22), 1), [1]],
)
def test_invalid_weights_are_refused(weights: Any) -> None:
    with pytest.raises(InvalidAliasError):
        Alias.new("my-app", "prod", weights=weights)
    with pytest.raises(InvalidAliasError):
        Alias.new("my-app", "prod", 1, weights={1: 100})


def test_versioned_can_represent_two_arms_that_add_up_to_a_hundred() -> None:
    assert two_arms(arms_of(None, None, None, {2: 20, 1: 80})) == ("000001", "000002", 20)
    assert two_arms(arms_of(1, 2, 0)) == ("000001", "000002", 0)
    assert two_arms(arms_of(None, None, None, {3: 100})) == ("000003", None, None)
    assert is_plain(arms_of(1, 2, 99))


def test_of_more_arms_versioned_gets_only_the_heaviest() -> None:
    arms = arms_of(None, None, None, {1: 1, 2: 5, 3: 2})
    assert two_arms(arms) == ("000002", None, None)
    assert not is_plain(arms)
    assert not is_plain(arms_of(None, None, None, {1: 1, 2: 2}))


@pytest.mark.parametrize("weight", [0, 1, 20, 99])
def test_an_alias_draws_by_weight_with_the_caller_s_generator(weight: int) -> None:
    alias = Alias.new("my-app", "prod", 1, 2, weight)
    picks = [alias.resolve(random=lambda step=step: (step + 0.5) / 1000) for step in range(1000)]  # type: ignore[misc]
    assert picks.count("2") == weight * 10


def test_an_alias_created_without_a_database_cannot_draw_at_random() -> None:
    with pytest.raises(InvalidOptionsError, match="at random"):
        Alias.new("my-app", "prod").resolve()


def test_an_override_chooses_the_version() -> None:
    alias = Alias.new("my-app", "prod", 1, 2, 5)
    assert alias.resolve(key="user", override=2) == "2"
    assert alias.resolve(override="000001") == "1"
    with pytest.raises(InvalidAliasError, match="does not serve version 3"):
        alias.resolve(key="user", override=3)


def test_a_copy_resolves_with_its_own_weights() -> None:
    from dataclasses import replace

    alias = Alias.new("my-app", "prod", 1, 2, 0)
    moved = replace(alias, arms=(("000001", 1), ("000002", 99)))
    assert {alias.resolve(key=each) for each in range(50)} == {"1"}
    assert "2" in {moved.resolve(key=each) for each in range(50)}


# --- times ------------------------------------------------------------------------------------------------


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_time_has_31_characters_and_is_parsed_back(moment: datetime) -> None:
    assert len(show_moment(moment)) == 31
    assert show_moment(moment).endswith("+0000")
    assert parse_moment(show_moment(moment)) == moment


@pytest.mark.parametrize(
    "text", ["2026-11-15T02:33:10Z", "2026-11-15T02:33:10.000000+0000", "2026-11-15T03:33:10+01:00"]
)
def test_times_in_other_forms_are_parsed_too(text: str) -> None:
    assert parse_moment(text) == datetime(2026, 11, 15, 2, 33, 10, tzinfo=UTC)
