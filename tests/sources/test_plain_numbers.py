"""Two readers of plain numbers: the same bits, or pandas reads."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

from dkl.sources.plain_numbers import MISSING, read_plain

pytest.importorskip("pyarrow")
RNG = np.random.default_rng(0)
SCALED = RNG.standard_normal(2000) * 10.0 ** RNG.integers(-300, 300, 2000)
TEXTS = {
    "shortest": [repr(float(x)) for x in SCALED],
    "many digits": [f"{x:.25f}" for x in RNG.standard_normal(2000)],
    "few digits": [f"{x:.3e}" for x in SCALED],
    "halfway": [f"{n}.0" for n in (2**53 + 2 * RNG.integers(0, 2**40, 2000) + 1).tolist()],
    "large whole numbers": [str(n) for n in RNG.integers(2**53, 2**63, 2000).tolist()],
    "larger than any integer": ["1" + "234567890" * 4, "-9" * 1 + "87" * 20],
    "forms": ["1.", ".5", "-.5", "+2", " 3", "4 ", "\t5", "6E5", "7e-5", "0.0", "-0.0", "inf", "-inf", "1e-400"],
    "missing": ["1.5", *MISSING[1:]],
}


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_nearest_doubles(kind: str, end: str) -> None:
    """Of every form of number: those of Python's own float, and of pandas."""
    data = "".join(f"1,{text},2{end}" for text in TEXTS[kind]).encode()
    found = read_plain(data, ",", 3, [1])
    assert found is not None
    said = ["nan" if text in MISSING else text for text in TEXTS[kind]]
    np.testing.assert_array_equal(found[0], np.array([float(text) for text in said]))
    theirs = pd.read_csv(io.BytesIO(data), header=None)[1].to_numpy(np.float64)
    np.testing.assert_array_equal(found[0], theirs)
    np.testing.assert_array_equal(np.signbit(found[0][found[0] == 0]), np.signbit(theirs[theirs == 0]))


@pytest.mark.parametrize(
    "text",
    ['"1",2\n', "1,2\r3,4\n", "1,é\n", "1,\0\n", "1,zebra\n", "1,2,3\n", "1\n", "1,0x10\n", "1,1_0\n", "1,True\n",
     " \n", "1,--2\n", "1, NA\n", ""],
)  # fmt: skip
def test_what_pandas_reads(text: str) -> None:
    """Quotes, texts, wrong fields, other alphabets: none of it is read here."""
    assert read_plain(text.encode(), ",", 2, [0, 1]) is None


def test_blank_lines_and_columns_left_out() -> None:
    """As pandas does it."""
    found = read_plain(b"\n1;x;3\n\n4;y;6\n\n", ";", 3, [2, 0])
    assert found is not None
    assert [column.tolist() for column in found] == [[3.0, 6.0], [1.0, 4.0]]
