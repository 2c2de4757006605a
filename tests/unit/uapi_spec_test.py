#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compares include/uapi/linux/qgpu.h with include/spec/qgpu.yaml: every enumeration with its numbers,
every constant, every attribute's type as the header's comment gives it. Exit 77: PyYAML is missing."""
import re
import sys

try:
    import yaml
except ImportError:
    print("SKIP: python3-yaml is not installed")
    sys.exit(77)

ROOT = sys.argv[1]


def read_header(path):
    """-> ({enum name: [(NAME, number)]}, {NAME: number or text}, {NAME: first word of its comment})"""
    text = open(path, encoding="ascii").read()
    enums = {}
    for name, body in re.findall(r"^enum (\w+) \{(.*?)^\};", text, re.S | re.M):
        entries, number = [], 0
        bare = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
        for entry in re.findall(r"^\s*(\w+)\s*(?:=\s*([^,\n]+))?,?", bare, re.M):
            if entry[0].startswith("__") or entry[1]:
                continue
            entries.append((entry[0], number))
            number += 1
        enums[name] = entries
    defines = {}
    for name, value in re.findall(r"^#define (QGPU_\w+) (\S+)", text, re.M):
        defines[name] = value.strip('"') if value.startswith('"') else int(value, 0)
    kinds = dict(re.findall(r"^\s*(QGPU_A_\w+),\s*/\* (\w+)", text, re.M))
    return enums, defines, kinds


def upper(prefix, name):
    return (prefix + name).replace("-", "_").upper()


def main():
    enums, defines, kinds = read_header(f"{ROOT}/include/uapi/linux/qgpu.h")
    spec = yaml.safe_load(open(f"{ROOT}/include/spec/qgpu.yaml", encoding="ascii"))
    wrong = []

    def expect(what, header, yaml_says):
        if header != yaml_says:
            wrong.append(f"{what}: the header says {header}, the spec says {yaml_says}")

    expect("family", defines.pop("QGPU_GENL_NAME"), spec["name"])
    expect("version", defines.pop("QGPU_GENL_VERSION"), spec["version"])
    expect("group", defines.pop("QGPU_GENL_MCGRP_EVENTS"), spec["mcast-groups"]["list"][0]["name"])

    seen_enums = set()
    for definition in spec["definitions"]:
        name, kind = definition["name"], definition["type"]
        if kind == "const":
            expect(name, defines.pop(upper("", name), None), definition["value"])
        elif kind == "flags":
            for bit, entry in enumerate(definition["entries"]):
                flag = upper(definition["name-prefix"], entry)
                expect(flag, defines.pop(flag, None), 1 << bit)
        else:
            enum = "qgpu_" + name.replace("-", "_")
            seen_enums.add(enum)
            entries = [(upper(definition["name-prefix"], entry), number)
                       for number, entry in enumerate(definition["entries"])]
            expect(f"enum {enum}", enums.get(enum), entries)

    # The header writes "nested X" for nests, "binary: ..." for arrays; a comment that begins with
    # anything else belongs to a flag or carries the type as its first word.
    same = {"nest": "nested"}
    for attributes in spec["attribute-sets"]:
        name = attributes["name"]
        enum = "qgpu_attr" if name == "qgpu" else "qgpu_attr_" + name
        seen_enums.add(enum)
        prefix = attributes["name-prefix"]
        entries = [(upper(prefix, "unspec"), 0)]
        for number, attribute in enumerate(attributes["attributes"], 1):
            full = upper(prefix, attribute["name"])
            entries.append((full, number))
            if attribute["type"] != "pad":
                expect(full, kinds.get(full), same.get(attribute["type"], attribute["type"]))
        expect(f"enum {enum}", enums.get(enum), entries)

    seen_enums.add("qgpu_cmd")
    operations = spec["operations"]
    commands = [(upper(operations["name-prefix"], "unspec"), 0)]
    for number, operation in enumerate(operations["list"], 1):
        commands.append((upper(operations["name-prefix"], operation["name"]), number))
    expect("enum qgpu_cmd", enums.get("qgpu_cmd"), commands)

    expect("enumerations without a counterpart", sorted(set(enums) - seen_enums), [])
    expect("constants without a counterpart", sorted(defines), [])
    for line in wrong:
        print(line)
    print(f"{len(seen_enums)} enumerations compared, {len(wrong)} differences")
    return 1 if wrong or not seen_enums else 0


sys.exit(main())
