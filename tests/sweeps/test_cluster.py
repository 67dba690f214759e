from urllib.error import HTTPError
from urllib.request import urlopen

import psutil
import pytest
from distributed import KilledWorker

from ace_studio.sweeps.cluster import is_lost, local_cluster


@pytest.mark.slow
def test_a_cluster_of_this_machine_is_closed_to_others():
    with local_cluster([[0]]) as cluster:
        own = psutil.Process()
        processes = [own, *own.children(recursive=True)]
        listening = [one.laddr for each in processes for one in each.net_connections() if one.status == "LISTEN"]
        assert listening
        assert {place.ip for place in listening} == {"127.0.0.1"}
        assert cluster.scheduler_address.startswith("tls://")
        page = f"http://127.0.0.1:{cluster.scheduler.http_server.port}/api/v1/get_workers"
        with pytest.raises(HTTPError, match="404"):
            urlopen(page, timeout=5)


def test_a_job_whose_workers_died_is_lost():
    assert is_lost(KilledWorker("job", None, 2))
    assert not is_lost(ValueError())
    assert not is_lost(None)
