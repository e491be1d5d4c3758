"""Types that say what an option of a check names. `publications` reads them from the parameters'
annotations."""

from typing import NewType, TypedDict

Method = NewType("Method", str)  # of the experiment
Sweep = NewType("Sweep", str)
DataSet = NewType("DataSet", str)
Comparison = NewType("Comparison", str)  # an entry of its `published` section
Other = NewType("Other", str)  # another experiment
OtherMethod = NewType("OtherMethod", str)  # of that one
Mechanism = NewType("Mechanism", str)
Step = NewType("Step", str)  # of the preparation
Printed = NewType("Printed", str)  # a number's path in the source
End = NewType("End", str)  # "smallest" or "largest"
Axis = NewType("Axis", str)  # "epsilon" or "train_size"

Methods = Method | list[Method]
Sweeps = Sweep | list[Sweep]
DataSets = DataSet | list[DataSet]
At = float | list[float] | End


class Place(TypedDict, total=False):
    """Options that a check hands on to `Results.cells`, if it chooses the other options itself."""

    sweep: Sweeps
    datasets: DataSets
    train_size: At


class Point(Place):
    epsilon: At


class Cells(Point):
    methods: Methods
