"""The examples of the docstrings give what they say."""

import doctest
import importlib
import inspect
import pkgutil
import re

import pytest

import pitlake

MODULES = [name for _, name, _ in pkgutil.walk_packages(pitlake.__path__, "pitlake.") if "engines" not in name or name.endswith(".events")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, lake):
    failed, _ = doctest.testmod(importlib.import_module(name), extraglobs={"lake": lake})
    assert failed == 0


@pytest.mark.parametrize("kind", [pitlake.Lake, pitlake.Result])
def test_every_public_call_has_an_example(kind):
    found = {one.name.rpartition(".")[2]: one.examples for one in doctest.DocTestFinder(exclude_empty=False).find(kind)}
    assert [name for name in vars(kind) if not name.startswith("_") and not found[name]] == []


def test_the_parameters_of_joins_read_the_same_in_each_call():
    shared = [pitlake.Lake.panel, pitlake.Lake.pit_join, pitlake.Lake.window]
    texts = [re.search(r"\n    currency: .*?(?=\n\n)", inspect.getdoc(call), re.S)[0] for call in shared]
    assert texts[0].count("\n    ") >= 10
    assert len(set(texts)) == 1
