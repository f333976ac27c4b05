"""Answers of a join in any order, put at the places of their decisions: a sort in the engine would move every column twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import duckdb

from .queries import KEY, METRIC_NUMBER, Decided

FrameConversion = Callable[..., duckdb.DuckDBPyRelation]
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
        _ = self._relation

    def arrow(self, convert: FrameConversion, plain: bool) -> tuple[Any, list[str]] | None:
        """Computes the answer as a table of pyarrow, and lists its columns that are intervals in microseconds.

        None if it has to be sorted.
        """
        # An interval takes twice the memory of its microseconds, and is needed at its place alone.
        spans = any(cell.field == "age" for cell in self.cells)
        answers = (self._relation.project("* REPLACE (epoch_us(age) AS age)") if spans else self._relation).to_arrow_table()
        table, lengths = self._own_arrow(convert, plain)
        slots = self._slots(len(table), lambda name: answers[name].to_numpy())
        if slots is None:
            return None
        decisions = len(table)
        fields = {field: _placed(answers[field], slots) for field in {cell.field for cell in self.cells}}
        if spans and not plain:
            fields["age"] = _intervals(fields["age"])
        for cell in self.cells:
            table = table.append_column(cell.name, fields[cell.field].slice(cell.metric * decisions, decisions))
        return table, lengths + [cell.name for cell in self.cells if cell.field == "age"]

    def df(self, convert: FrameConversion) -> Any:
        """Computes the answer as a frame of pandas; None if it has to be sorted."""
        import pandas

        if self.metrics > 1 and any(cell.field == "o" for cell in self.cells):
            # Texts of all metrics in one column: pandas finds a common type for them, where each metric has its own.
            return None
        answers = self._relation.df()
        own = self._own_df(convert)
        slots = self._slots(len(own), lambda name: answers[name].to_numpy())
        if slots is None:
            return None
        rows = _rows(slots).reshape(self.metrics, len(own))
        cells = {cell.name: answers[cell.field].array.take(rows[cell.metric]) for cell in self.cells}
        return pandas.concat([own, pandas.DataFrame(cells)], axis=1)

    def _own_arrow(self, convert: FrameConversion, plain: bool) -> tuple[Any, list[str]]:
        """Reads the columns of the caller as a table of pyarrow, and lists those that are intervals."""
        if self.decided.arrow is not None:
            return self.decided.arrow.columns, []
        relation = self.decided.session.sql(f"FROM {self.decided.table}")
        spans = [name for name, kind in zip(relation.columns, map(str, relation.types)) if plain and kind == "INTERVAL"]
        own = convert(relation, plain).to_arrow_table()
        order = self._order(own[KEY].to_numpy())
        return (own if order is None else own.take(order)).drop_columns([KEY]), spans

    def _own_df(self, convert: FrameConversion) -> Any:
        """Reads the columns of the caller as a frame of pandas."""
        if self.decided.arrow is not None and (lent := self.decided.arrow.frame_of_pandas()) is not None:
            return lent
        own = convert(self.decided.session.sql(f"FROM {self.decided.table}")).df()
        order = self._order(own[KEY].to_numpy())
        return (own if order is None else own.take(order).reset_index(drop=True)).drop(columns=KEY)

    @staticmethod
    def _order(numbers: Any) -> Any:
        """Finds the order of decisions by their numbers; None if they are in order."""
        return numbers.argsort() if (numbers[1:] < numbers[:-1]).any() else None

    def _slots(self, decisions: int, column: Callable[[str], Any]) -> Any:
        """Computes the place of each answer, decisions first, then metrics; None unless each place has exactly one answer."""
        import numpy

        slots = column(KEY) - 1
        if self.metrics > 1:
            slots += column(METRIC_NUMBER).astype(slots.dtype) * decisions
        if len(slots) != decisions * self.metrics:
            return None
        taken = numpy.zeros(len(slots), bool)
        taken[slots] = True
        return slots if taken.all() else None


def _rows(slots: Any) -> Any:
    """Finds the row of the answer at each place."""
    import numpy

    rows = numpy.empty(len(slots), numpy.int64)
    rows[slots] = numpy.arange(len(slots))
    return rows


def _placed(column: Any, slots: Any) -> Any:
    """Puts the values of a column of pyarrow at their places."""
    import numpy
    import pyarrow

    if column.null_count == len(column):
        return pyarrow.nulls(len(column), column.type)
    kinds = pyarrow.types
    if not (kinds.is_float64(column.type) or kinds.is_timestamp(column.type) or kinds.is_int64(column.type)):
        return column.combine_chunks().take(pyarrow.array(_rows(slots)))
    # Written where they belong, chunk by chunk: each further copy of a million values costs as much as placing them.
    values = numpy.empty(len(column), numpy.int64)
    valid = None if column.null_count == 0 else numpy.empty(len(column), bool)
    begin = 0
    for chunk in column.chunks:
        places, begin = slots[begin:begin + len(chunk)], begin + len(chunk)
        values[places] = numpy.frombuffer(chunk.buffers()[1], numpy.int64, len(chunk) + chunk.offset)[chunk.offset:]
        if valid is not None:
            valid[places] = chunk.is_valid().to_numpy(zero_copy_only=False)
    known = None if valid is None else pyarrow.py_buffer(numpy.packbits(valid, bitorder="little"))
    return pyarrow.Array.from_buffers(column.type, len(column), [known, pyarrow.py_buffer(values)])


def _intervals(micros: Any) -> Any:
    """Converts microseconds to intervals as DuckDB writes them: no months, no days, and nanoseconds."""
    import numpy
    import pyarrow

    kind = pyarrow.month_day_nano_interval()
    if micros.null_count == len(micros):
        return pyarrow.nulls(len(micros), kind)
    parts = numpy.zeros((len(micros), 2), numpy.int64)
    known, values = micros.buffers()
    numpy.multiply(numpy.frombuffer(values, numpy.int64, len(micros)), 1000, out=parts[:, 1])
    return pyarrow.Array.from_buffers(kind, len(micros), [known, pyarrow.py_buffer(parts)])
