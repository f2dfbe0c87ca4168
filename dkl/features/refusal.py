"""A refusal that names the row."""

from __future__ import annotations


class Refusal(ValueError):
    """A row that cannot be used, counted from the block's first; fills {row}, {column} and {name} of the template."""

    def __init__(self, row: int, template: str, column: int = 0) -> None:
        super().__init__(template.format(row=row, column=column, name="X"))
        self.row, self.template, self.column = row, template, column

    def __reduce__(self) -> tuple[type[Refusal], tuple[int, str, int]]:
        return Refusal, (self.row, self.template, self.column)

    def at(self, start: int, name: str = "X") -> tuple[int, str]:
        """(row, sentence) counted from the first row of the data of that name, if the block begins at `start`."""
        row = start + self.row
        return row, self.template.format(row=row, column=self.column, name=name)

    def after(self, rows: int) -> Refusal:
        """The same of a block that has so many rows before."""
        return Refusal(self.row + rows, self.template, self.column)
