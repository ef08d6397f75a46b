"""The fleet: hundreds of models trained as one, over the library's objective."""

from pairlearn_bench.fleet.fleet import Fleet as Fleet
from pairlearn_bench.fleet.groups import Group as Group
from pairlearn_bench.fleet.groups import Member as Member
from pairlearn_bench.fleet.groups import TestSet as TestSet
