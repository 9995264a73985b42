"""What schemathesis cannot know by itself: keys to call with, resources that exist, and bodies that are accepted.

The phase that covers a schema makes every case it can think of: of each operation's the first ones run, and of the later
ones every tenth: a body with many fields has hundreds.

Keys change before one of them has made the requests in a row that the console allows it. Of the calls of each operation
the first and every second after it are given existing resources, two thirds of these accepted bodies too, so that every
operation succeeds; the rest stays as it was generated. Each call's operation and status is written to SVC_CALLS for the
judgement.
"""

import collections
import itertools
import json
import os
import urllib.error
import urllib.request

import schemathesis

API = os.environ["SVC_API"]
FIXTURES = json.load(open(os.environ["SVC_FIXTURES"]))
CALLS = open(os.environ["SVC_CALLS"], "a", buffering=1)
KEYS = FIXTURES["keys"]
# Answers teach schemathesis ids that exist; what other operations need must not be ended with one of them, nor the keys
# that call them.
SPARED = set(FIXTURES["spared"])
KEPT = {value for parameters in FIXTURES["paths"].values() for value in parameters.values()}
NOBODY = "00000000-0000-7000-8000-000000000000"
CALLS_PER_KEY = 500
COVERED_FIRST = 4
COVERED_EVERY = 10

counter = itertools.count(1)
helper_counter = itertools.count(1)
# Of the operation's own: the parity of all calls together may never suit one of them.
calls_of = collections.Counter()
covered_of = collections.Counter()


def key(number):
    return KEYS[(number // CALLS_PER_KEY) % (len(KEYS) - 4)]


def helper_key(number):
    return KEYS[-1 - (number // CALLS_PER_KEY) % 4]


def create(path, body):
    """Makes a resource of its own for a call that ends it; None when the console refuses."""
    number = next(helper_counter)
    request = urllib.request.Request(
        API + path,
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json", "x-api-key": helper_key(number)},
        method="POST",
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError:
        return None


def numbered(value, number):
    """The sample with {n} replaced, so that names and addresses differ from call to call."""
    if isinstance(value, str):
        return value.replace("{n}", str(number)).replace("{a}", f"{number // 250 % 250}.{number % 250}")
    if isinstance(value, list):
        return [numbered(item, number) for item in value]
    if isinstance(value, dict):
        return {name: numbered(item, number) for name, item in value.items()}
    return value


def resources(operation, number):
    """Path parameters that exist for the operation."""
    recipe = FIXTURES["fresh"].get(operation)
    if recipe is not None:
        made = create(numbered(recipe["path"], number), numbered(recipe["body"], number))
        for name in recipe["id"]:
            made = made and made.get(name)
        return {**FIXTURES["paths"].get(operation, {}), recipe["parameter"]: made} if made else None
    return FIXTURES["paths"].get(operation)


@schemathesis.hook
def filter_case(context, case):
    if case.meta is None or str(case.meta.phase.name) != "coverage":
        return True
    operation = case.operation.definition.raw["operationId"]
    number = covered_of[operation]
    covered_of[operation] += 1
    return number < COVERED_FIRST or number % COVERED_EVERY == 0


@schemathesis.hook
def before_call(context, case, kwargs):
    operation = case.operation.definition.raw["operationId"]
    number = next(counter)
    turn = calls_of[operation]
    calls_of[operation] += 1
    case.headers = case.headers or {}
    case.headers["x-api-key"] = key(number)
    ends = operation in FIXTURES["fresh"] and operation not in FIXTURES["paths"]
    spared = SPARED | KEPT if ends else SPARED
    given = case.path_parameters or {}
    case.path_parameters = {name: NOBODY if str(value) in spared else value for name, value in given.items()}
    if turn % 2 == 0:
        found = resources(operation, number)
        if found:
            case.path_parameters = found
        sample = FIXTURES["bodies"].get(operation)
        if sample is not None and turn % 3 != 1:
            case.body = numbered(sample, number)
            case.headers.pop("Idempotency-Key", None)
        if "query" in FIXTURES and operation in FIXTURES["query"]:
            case.query = FIXTURES["query"][operation]


@schemathesis.hook
def after_call(context, case, response):
    operation = case.operation.definition.raw["operationId"]
    CALLS.write(json.dumps([operation, response.status_code]) + "\n")
