import pytest


def pytest_addoption(parser):
    parser.addoption("--renew", action="store_true", help="write the golden files as they are rendered now")


@pytest.fixture
def renew(request):
    return request.config.getoption("--renew")
