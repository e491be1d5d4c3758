from study.kept import Kept


def test_values_are_found_by_later_processes_until_newer_ones_are_too_many(tmp_path):
    path = tmp_path / "cache" / "values.json"
    first = Kept(path, most=2)
    first.values["a"] = [1]
    first._write(first.values, 0)
    later = Kept(path, most=2)
    assert later.values == {"a": [1]}
    later.values |= {"b": 2, "c": 3}
    later._write(later.values, 1)
    assert Kept(path, most=2).values == {"b": 2, "c": 3}
    path.write_text("{")  # of a process that was killed
    assert Kept(path, most=2).values == {}
