#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""schema_test.py ROOT DAEMON_TEST: every JSON document that the test Schema.* of this binary prints, one a line after the
name of its schema, is valid by docs/schema/NAME.schema.json, and every key of it is in the schema: a key that is not
published is none. Exit 77: python3-jsonschema is missing."""
import json
import re
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("SKIP: python3-jsonschema is not installed")
    sys.exit(77)

ROOT, BINARY = sys.argv[1:3]


def closed(schema):
    """The same schema with unknown keys refused, as a reader of the published one must not."""
    if isinstance(schema, dict):
        schema = {key: closed(value) for key, value in schema.items()}
        if "properties" in schema and "additionalProperties" not in schema:
            schema["additionalProperties"] = False
    elif isinstance(schema, list):
        schema = [closed(value) for value in schema]
    return schema


failures, seen = 0, set()
command = [BINARY, "--gtest_filter=Schema.*"]
output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
for name, document in re.findall(r"^([a-z]+) (\{.*)$", output, re.M):
    seen.add(name)
    with open(f"{ROOT}/docs/schema/{name}.schema.json", encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    for error in jsonschema.Draft202012Validator(closed(schema)).iter_errors(json.loads(document)):
        print(f"{name}: {'/'.join(map(str, error.absolute_path))}: {error.message}")
        failures += 1
print(f"{len(seen)} kinds of documents, {failures} mistakes")
sys.exit(1 if failures or not seen else 0)
