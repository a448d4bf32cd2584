"""Carry the console's pages in the wheel: in the tree they stand at the top, beside the code."""

from setuptools import find_packages, setup

PAGES = {"reliability.console.templates": "templates", "reliability.console.static": "static"}

setup(
    packages=[*find_packages(include=["reliability*"]), *PAGES],
    package_dir=PAGES,
    package_data={name: ["**/*"] for name in PAGES}
    | {"reliability": ["py.typed", "sql/*.sql"]},
)
