"""With `--cache`, a checkout copies data that another checkout has downloaded and prepared."""

import pytest

pytestmark = pytest.mark.slow
ROWS = "".join(f"{20 + k % 60},{'yes' if k % 3 else 'no'}\n" for k in range(60))
MADE = ("results/data/survey.npz", "results/data/cm08_separable.npz")


@pytest.fixture
def checkout(fresh, tmp_path):
    """Function that copies the project and adds a data set to download. All copies share a cache."""
    (tmp_path / "survey.csv").write_text(f"age,answer\n{ROWS}")
    (tmp_path / "cache").mkdir()
    entry = (
        f"\n{{name}}:\n  source: {{{{csv: '{(tmp_path / 'survey.csv').as_uri()}'}}}}\n"
        f"  label: answer\n  positive: 'yes'\n  bounds: {{{{age: [0, 100]}}}}\n"
    )

    def make(name="survey"):
        project = fresh("checkout")
        project.append("config/datasets.yaml", entry.format(name=name))
        project.environment = {"SNAKEMAKE_OUTPUT_CACHE": str(tmp_path / "cache")}
        return project

    return make


def copied(log):
    return log.count(" from cache.") - log.count(" to cache.")


def test_a_second_checkout_copies_what_the_first_has_made(checkout):
    first, second = checkout(), checkout()
    first.snakemake("--cache", "--", *MADE)
    assert copied(first.log()) == 0 and first.log().count(" to cache.") == 5
    expected = [(first / path).read_bytes() for path in MADE]
    second.snakemake("--cache", "--", *MADE)
    assert copied(second.log()) == 5
    assert [(second / path).read_bytes() for path in MADE] == expected
    assert second.plan("--", *MADE) == set()


def test_what_would_differ_is_not_copied(checkout):
    first, other = checkout(), checkout(name="another")
    first.snakemake("--cache", "--", *MADE)
    # Draws depend on the seed and the data set's name, which differ.
    other.snakemake(
        *("--cache", "--config", "seed=5", "results=seed-5", "--"),
        *("seed-5/data/another.npz", "seed-5/data/cm08_separable.npz"),
    )
    assert copied(other.log()) == 1  # the downloaded file
    other.snakemake("--cache", "--", "results/data/another.npz")
    assert copied(other.log()) == 0 and " to cache." in other.log()


def test_a_cache_needs_a_folder(checkout):
    project = checkout()
    project.environment = {"SNAKEMAKE_OUTPUT_CACHE": ""}
    output = project.snakemake("--cache", "-n", "--", *MADE, ok=False)
    assert "error: --cache needs a folder that it may use" in output
    assert "Traceback" not in output
