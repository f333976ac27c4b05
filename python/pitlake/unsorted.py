"""Answers of a join in any order, put at the places of their decisions: a sort in the engine would move every column twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import duckdb

from .queries import KEY, METRIC_NUMBER, Decided

Told = Callable[..., duckdb.DuckDBPyRelation]
"""Converts the values of a relation that frames lack."""


@dataclass(frozen=True)
class Cell:
    """A column that a join adds to the decisions."""

    name: str
    metric: int
    """Number of its metric."""
    field: str


@dataclass(frozen=True)
class UnsortedAnswers:
    """Answers of a join in any order, each with the number of its decision."""

    decided: Decided
    query: str
    """SQL of the answers: the number of the decision, that of the metric, and the fields of the point."""
    metrics: int
    """Number of metrics; answers of more than one also have its number."""
    cells: Sequence[Cell]

    def can_be_placed(self) -> bool:
        """Checks whether the rows can be put in order here."""
        # A frame may have columns by names that the join uses within itself.
        return find_spec("numpy") is not None and not self.decided.hidden_names

    @cached_property
    def _relation(self) -> duckdb.DuckDBPyRelation:
        return self.decided.session.sql(self.query)

    def bind(self) -> None:
        """Binds the query, which refuses what is wrong with it."""
        self._relation  # noqa: B018

    def arrow(self, told: Told, plain: bool) -> tuple[Any, list[str]] | None:
        """Computes the answer as a table of pyarrow, and lists its columns that are intervals in microseconds.

        None if it has to be sorted.
        """
        import pyarrow

        ages = [cell.name for cell in self.cells if plain and cell.field == "age"]
        answers = (self._relation.project("* REPLACE (epoch_us(age) AS age)") if ages else self._relation).to_arrow_table()
        table, spans = self._own_arrow(told, plain)
        places = self._places(len(table), lambda name: answers[name].to_numpy())
        if places is None:
            return None
        rows = list(map(pyarrow.array, places))
        fields = {field: answers[field].combine_chunks() for field in {cell.field for cell in self.cells}}
        for cell in self.cells:
            table = table.append_column(cell.name, fields[cell.field].take(rows[cell.metric]))
        return table, spans + ages

    def df(self, told: Told) -> Any:
        """Computes the answer as a frame of pandas; None if it has to be sorted."""
        import pandas

        if self.metrics > 1 and any(cell.field == "o" for cell in self.cells):
            # Texts of all metrics in one column: pandas finds a common type for them, where each metric has its own.
            return None
        answers = self._relation.df()
        own = self._own_df(told)
        places = self._places(len(own), lambda name: answers[name].to_numpy())
        if places is None:
            return None
        cells = {cell.name: answers[cell.field].array.take(places[cell.metric]) for cell in self.cells}
        return pandas.concat([own, pandas.DataFrame(cells)], axis=1)

    def _own_arrow(self, told: Told, plain: bool) -> tuple[Any, list[str]]:
        """Reads the columns of the caller as a table of pyarrow, and lists those that are intervals."""
        if self.decided.arrow is not None:
            return self.decided.arrow.columns, []
        relation = self.decided.session.sql(f"FROM {self.decided.table}")
        spans = [name for name, kind in zip(relation.columns, map(str, relation.types)) if plain and kind == "INTERVAL"]
        own = told(relation, plain).to_arrow_table()
        order = self._order(own[KEY].to_numpy())
        return (own if order is None else own.take(order)).drop_columns([KEY]), spans

    def _own_df(self, told: Told) -> Any:
        """Reads the columns of the caller as a frame of pandas."""
        if self.decided.arrow is not None and (lent := self.decided.arrow.frame_of_pandas()) is not None:
            return lent
        own = told(self.decided.session.sql(f"FROM {self.decided.table}")).df()
        order = self._order(own[KEY].to_numpy())
        return (own if order is None else own.take(order).reset_index(drop=True)).drop(columns=KEY)

    @staticmethod
    def _order(numbers: Any) -> Any:
        """Finds the order of decisions by their numbers; None if they are in order."""
        return numbers.argsort() if (numbers[1:] < numbers[:-1]).any() else None

    def _places(self, decisions: int, column: Callable[[str], Any]) -> Any:
        """Finds for each metric and decision the row of its answer; None unless each has exactly one."""
        import numpy

        numbers = column(KEY)
        if len(numbers) != decisions * self.metrics:
            return None
        places = numpy.full((self.metrics, decisions), -1)
        metric = column(METRIC_NUMBER) if self.metrics > 1 else 0
        places[metric, numbers - 1] = numpy.arange(len(numbers))
        return None if (places < 0).any() else places
