"""The examples of the docstrings give what they say."""

import doctest
import importlib
import pkgutil

import pytest

import pitlake

MODULES = [name for _, name, _ in pkgutil.walk_packages(pitlake.__path__, "pitlake.") if "engines" not in name or name.endswith(".events")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, lake):
    failed, _ = doctest.testmod(importlib.import_module(name), extraglobs={"lake": lake})
    assert failed == 0


def test_most_questions_have_an_example():
    found = doctest.DocTestFinder().find(pitlake.Lake)
    assert len([one for one in found if one.examples]) >= 8
