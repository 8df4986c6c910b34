"""Makes a CycloneDX document of what `cargo metadata` and `package-lock.json` say. See sbom.sh."""

import base64
import hashlib
import json
import re
import sys
import uuid

ROOT = "noetl-cli"


def shipped(metadata):
    """The packages the program is built from, and which of them each one needs: no tests, no build tools."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = next(p["id"] for p in metadata["packages"] if p["name"] == ROOT)
    needs, todo = {}, [root]
    while todo:
        package = todo.pop()
        if package in needs:
            continue
        needs[package] = [
            dep["pkg"]
            for dep in nodes[package]["deps"]
            if any(kind["kind"] is None for kind in dep["dep_kinds"])
        ]
        todo.extend(needs[package])
    return root, needs


def checksums(lock):
    """SHA-256 of each crate from the registry, by name and version."""
    found = re.findall(
        r'^name = "(.+)"\nversion = "(.+)"\nsource = .+\nchecksum = "(.+)"', lock, re.MULTILINE
    )
    return {(name, version): checksum for name, version, checksum in found}


def crate(package, hashes):
    name, version = package["name"], package["version"]
    reference = f"pkg:cargo/{name}@{version}"
    component = {"type": "library", "bom-ref": reference, "name": name, "version": version, "purl": reference}
    if package.get("license"):
        # Older crates write a slash where SPDX has OR.
        component["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if (name, version) in hashes:
        component["hashes"] = [{"alg": "SHA-256", "content": hashes[name, version]}]
    if package.get("repository"):
        component["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return component


def module(path, package):
    name, version = path.rpartition("node_modules/")[2], package["version"]
    reference = f"pkg:npm/{name.replace('@', '%40')}@{version}"
    component = {"type": "library", "bom-ref": reference, "name": name, "version": version, "purl": reference}
    component["scope"] = "excluded" if package.get("dev") else "required"
    if package.get("license"):
        component["licenses"] = [{"expression": package["license"]}]
    algorithm, _, content = package.get("integrity", "").partition("-")
    if algorithm == "sha512":
        component["hashes"] = [{"alg": "SHA-512", "content": base64.b64decode(content).hex()}]
    return component


def main(metadata, lock, modules, to):
    with open(metadata, encoding="utf-8") as file:
        metadata = json.load(file)
    with open(lock, encoding="utf-8") as file:
        lock = file.read()
    with open(modules, encoding="utf-8") as file:
        modules = json.load(file)["packages"]
    packages = {package["id"]: package for package in metadata["packages"]}
    root, needs = shipped(metadata)
    hashes = checksums(lock)
    crates = {id: crate(packages[id], hashes) for id in needs}
    program = {**crates.pop(root), "type": "application"}
    web = {module(path, package)["bom-ref"]: module(path, package) for path, package in modules.items() if path}
    components = sorted([*crates.values(), *web.values()], key=lambda one: one["bom-ref"])
    crates[root] = program
    dependencies = [
        {"ref": crates[id]["bom-ref"], "dependsOn": sorted({crates[need]["bom-ref"] for need in needs[id]})}
        for id in needs
    ]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": program},
        "components": components,
        "dependencies": sorted(dependencies, key=lambda one: one["ref"]),
    }
    # Named after what is in it, so that the same sources give the same document.
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).digest()
    document["serialNumber"] = f"urn:uuid:{uuid.UUID(bytes=digest[:16], version=4)}"
    with open(to, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    dev = sum(one["scope"] == "excluded" for one in web.values())
    print(f"{to}: {len(crates)} crates, {len(web) - dev} packages of the web UI, {dev} that build it", file=sys.stderr)


main(*sys.argv[1:])
