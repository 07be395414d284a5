#!/usr/bin/env python3
"""Writes times.json: texts of times with the microseconds since 1970 that pandas reads, null if it refuses them.

    python tests/golden/times/make.py        # with pandas 3

Cases have a format of strptime or, for numbers and ISO 8601, none. Texts without a zone are UTC.
"""

import json
import pathlib

import pandas

ISO = [
    "2024-05-01", "2024/05/01", "2024-05-01 10:30", "2024-05-01T10:30", "2024-05-01T10:30:05", "2024-05-01T10:30:05Z",
    "2024-05-01 10:30:05 UTC", "2024-05-01 10:30:05 GMT", "2024-05-01T10:30:05+02", "2024-05-01 10:30:05+02",
    "2024-05-01T10:30:05-09", "2024-05-01T10:30:05+0530", "2024-05-01T10:30:05+05:30", "2024-05-01T10:30:05.25-03:30",
    "2024-05-01 10:30:05.123456", "2024-05-01T10:30:05,5", "20240501T103005Z", "20240501T103005", "20240501T1030",
    "20240501T103005.5Z", "20240501T103005+02", "20240501T103005+0200", "20240501 103005",
    "Wed, 01 May 2024 10:30:05 GMT", "Wed, 1 May 2024 10:30:05 +0200", "01 May 2024 10:30:05 GMT",
    "Wed May 01 10:30:05 +0200 2024", "1969-12-31T23:59:59Z", "2024-02-29 23:59:59", "2023-02-29", "2024-13-01",
    "2024-05-01T10:60", "2024-05-01T25:00", "20241301T100000Z", "2024-05-01T10:30:05X",
]
FORMATS = {
    "%m/%d/%Y": ["05/01/2024", "5/1/2024", "12/31/1999", "13/01/2024", "02/29/2023", "05/01/24", "05-01-2024", "05/01/2024x"],
    "%d.%m.%Y": ["01.05.2024", "1.5.2024", "31.12.1999", "31.11.1999", "01/05/2024", "2024.05.01"],
    "%d.%m.%Y %H:%M": ["01.05.2024 10:30", "01.05.2024 9:05", "01.05.2024 24:00", "01.05.2024"],
    "%d.%m.%y %H:%M:%S": ["01.05.24 10:30:05", "31.12.68 00:00:00", "01.01.69 00:00:00"],
    "%m/%d/%Y %I:%M %p": ["05/01/2024 10:30 AM", "05/01/2024 12:00 AM", "05/01/2024 12:00 PM", "05/01/2024 1:05 pm",
                          "05/01/2024 13:05 PM", "05/01/2024 10:30"],
    "%m/%d/%Y %I:%M:%S %p": ["5/1/2024 3:07:09 PM", "12/1/2010 8:26:00 AM"],
    "%m/%d/%Y %H:%M": ["12/1/2010 8:26", "1/31/2011 23:59"],
    "%d %b %Y": ["01 May 2024", "1 may 2024", "29 Feb 2024", "29 Feb 2023", "01 Foo 2024"],
    "%B %d, %Y": ["May 01, 2024", "September 9, 2023", "december 31, 1999"],
    "%a %b %d %H:%M:%S %Y": ["Wed May 01 10:30:05 2024", "Mon May 1 10:30:05 2024"],
    "%Y-%m-%dT%H:%M:%S.%f%z": ["2024-05-01T10:30:05.25+02:00", "2024-05-01T10:30:05.123456Z", "2024-05-01T10:30:05.1-0930",
                               "2024-05-01T10:30:05.5"],
    "%d/%b/%Y:%H:%M:%S %z": ["01/May/2024:10:30:05 +0200", "31/Dec/1999:23:59:59 -0500"],
    "%Y%m%d%H%M%S": ["20240501103005", "19991231235959"],
    "%Y%m%d": ["20240501", "19691231"],
    "100%% %Y/%m/%d": ["100% 2024/05/01", "100 2024/05/01"],
}


def microseconds(text, form):
    try:
        time = pandas.to_datetime(text, format=form, utc=True)
    except (ValueError, TypeError):
        return None
    return time.value // 1000  # value: nanoseconds


def main():
    cases = [{"format": "", "text": text, "microseconds": microseconds(text, None)} for text in ISO]
    cases += [{"format": form, "text": text, "microseconds": microseconds(text, form)}
              for form, texts in FORMATS.items() for text in texts]
    lines = ",\n".join(json.dumps(case) for case in cases)
    path = pathlib.Path(__file__).parent / "times.json"
    path.write_text(f'{{"pandas": "{pandas.__version__}", "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
