"""How the text of a file stands for cells: the keys of `source:` that every reader of tables shares.

All of it is public. In a release, a row must follow from its own line alone, so keys are refused under
which one line could decide how another is read.
"""

import codecs
import re
from collections.abc import Iterable
from typing import NamedTuple

from dp_privacy.errors import Refused

__all__ = ["Format"]

BOM = b"\xef\xbb\xbf"
SEP_LINE = re.compile(rb'"?sep=[^\r\n]"?[;,\t]*\r?\n?', re.IGNORECASE)  # of spreadsheets
# Encodings in which a byte is a character, and bytes below 128 are ASCII. In others, a byte of a character
# could be a delimiter or a line feed.
SINGLE_BYTE = re.compile(
    r"ascii|iso8859-\d+|cp125[0-8]|cp(437|737|775|850|852|855|857|858|86[0-35-6]|869|1125)|koi8-[rtu]|"
    r"kz1048|mac-(cyrillic|greek|iceland|latin2|roman|turkish)|ptcp154|tis-620"
)
IN_NUMBERS = '"\n\r+-.eE0123456789'
MARKED = re.compile(r"[+-]?\d[\d.,'\u2019 \u00a0\u202f]*")  # a number with some marks


class Format(NamedTuple):
    """The format of a file of text.

    Attributes
    ----------
    delimiter : str
        What separates cells, one ASCII character.
    decimal : str
        The decimal mark of numbers: "." or ",".
    encoding : str
        UTF-8, or an encoding of single bytes that extends ASCII.
    header : int
        The number of the line that names the columns. By default, the first line that is not empty,
        no comment and no "sep=;" of a spreadsheet.
    comment : str
        A row whose first cell begins with this text is a comment.

    Methods
    -------
    of
        The checked format in the keys of a source.

    Examples
    --------
    >>> format = Format.of({"delimiter": ";", "decimal": ","})
    >>> format.plain(b"49,5")
    b'49.5'
    >>> try:
    ...     Format.of({"decimal": ","})
    ... except Refused as error:
    ...     print(error)
    decimal: a comma cannot also be the delimiter: set `delimiter: ";"`, or what separates the cells
    """

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    header: int = 1
    comment: str = ""

    @staticmethod
    def of(source: dict) -> "Format":
        """The checked format in the keys of a source.

        Parameters
        ----------
        source : dict
            Keys of `source:` in datasets.yaml. Others are ignored.

        Returns
        -------
        Format

        Raises
        ------
        dp_privacy.errors.Refused
            For a value that no reader can keep.
        """
        if "names" in source and "header" in source:
            raise Refused(
                "header: `names` are for a file without a line of names: keep one of both"
            )
        return Format(**{key: source[key] for key in Format._fields if key in source}).checked()

    def checked(self) -> "Format":
        """The format, with its encoding's usual name. Raises `Refused` if no reader can keep it."""
        delimiter, comment = self.delimiter, self.comment
        if not (isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii()):
            raise Refused("delimiter: must be one ASCII character, such as a semicolon")
        if delimiter in IN_NUMBERS:
            raise Refused("delimiter: must be in no number, and no quote and no end of a line")
        if self.decimal not in (".", ","):
            raise Refused("decimal: must be a point or a comma")
        if self.decimal == delimiter:
            raise Refused(
                'decimal: a comma cannot also be the delimiter: set `delimiter: ";"`, or what separates '
                "the cells"
            )
        if not isinstance(self.header, int) or isinstance(self.header, bool) or self.header < 1:
            raise Refused("header: must be the number of the line that names the columns, from 1")
        if not isinstance(comment, str) or not (comment.isascii() and comment == comment.strip()):
            raise Refused("comment: must be ASCII text without spaces around it")
        if delimiter in comment or '"' in comment:
            raise Refused("comment: must hold no quote and no delimiter")
        return self._replace(encoding=_encoding(self.encoding))

    @property
    def separator(self) -> bytes:
        return self.delimiter.encode()

    @property
    def facts(self) -> dict:
        """What a request keeps of it: the delimiter, and all other keys that are not the default."""
        other = {
            key: value
            for key, value in self._asdict().items()
            if key != "delimiter" and value != Format._field_defaults[key]
        }
        return {
            "separator": self.delimiter
        } | other  # the name that requests have had from the start

    def encoded(self, text: str) -> bytes:
        """Text as it is in the file. Raises `Refused` if the encoding has no such character."""
        try:
            return text.encode(self.encoding)
        except UnicodeEncodeError:
            raise Refused(f"{text!r} cannot be in a file of the encoding {self.encoding}") from None

    def plain(self, number: bytes) -> bytes:
        """A cell's number with a decimal point; b"" if it has a point where the decimal mark is a comma."""
        if self.decimal == ".":
            return number
        return b"" if b"." in number else number.replace(b",", b".")

    def is_comment(self, cells: list) -> bool:
        """Whether the cells of a row, text or bytes, are a comment."""
        if not self.comment or not cells:
            return False
        first = cells[0]
        return first.lstrip().startswith(
            self.comment.encode() if isinstance(first, bytes) else self.comment
        )

    def is_above(self, k: int, line: bytes) -> bool:
        """Whether the k-th line of a file (from 0) stands above the line that names the columns."""
        if self.header > 1:
            return k < self.header - 1
        line = line.removeprefix(BOM) if k == 0 else line
        return (
            not line.strip()
            or self.is_comment([line.lstrip(b'" \t')])
            or (k == 0 and SEP_LINE.fullmatch(line) is not None)
        )

    def names_at(self, lines: Iterable[bytes]) -> int:
        """The place, from 0, of the line that names the columns. It depends on no line below it."""
        return next((k for k, line in enumerate(lines) if not self.is_above(k, line)), 0)

    def hint(self, cell: str) -> str:
        """What a cell that is no number probably has; "" if that is unknown."""
        if not MARKED.fullmatch(cell) or cell.lstrip("+-").isdigit():
            return ""
        if self.decimal == ",":
            return "a point, or marks between thousands; write numbers in the file like 1234,5"
        named = "" if self.delimiter == "," else ' (set `decimal: ","`)'
        return f"a decimal comma{named}, or marks between thousands; write numbers in the file like 1234.5"


PLAIN = Format()


def _encoding(name):
    try:
        known = codecs.lookup(name).name
    except (LookupError, TypeError):
        raise Refused(f"encoding: {name!r} is no known encoding") from None
    if known in ("utf-8", "utf-8-sig"):
        return "utf-8"
    if not SINGLE_BYTE.fullmatch(known):
        raise Refused(
            f"encoding: in {name!r}, a byte of one character could be read as a delimiter or a line feed: "
            f"save the file as UTF-8"
        )
    return known


def likely_encoding(cell: bytes) -> str:
    """What a cell that is not UTF-8 is probably in. Windows has letters where Latin-1 has controls."""
    return "cp1252" if any(0x80 <= byte <= 0x9F for byte in cell) else "latin-1"
