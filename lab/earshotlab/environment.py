# SPDX-License-Identifier: GPL-2.0-or-later
"""What `lab env` prints: where the cluster is, for a shell."""
import os

from . import families, tls, topology


def variables(lab):
    return {
        "ES_NAME": lab.name,
        "ES_FAMILY": lab.net.family,
        "ES_VIP": topology.VIP if families.has4(lab.net.family) else "",
        "ES_VIP6": families.VIP6 if families.has6(lab.net.family) else "",
        "ES_PORT": str(topology.PORT),
        "ES_STATUS_PORT": str(topology.STATUS_PORT),
        "ES_CLIENT": lab.net.client,
        "ES_NODES": " ".join(lab.net.namespace(node) for node in lab.net.nodes),
        "ES_NODE_NAMES": " ".join(lab.net.nodes),
        "ES_SWITCH": lab.net.switch,
        "ES_BRIDGE": topology.PUBLIC_BRIDGE,
        "ES_CLUSTER_BRIDGE": topology.CLUSTER_BRIDGE,
        "ES_RUNDIR": lab.directory,
        "ES_CONFIG": lab.config_file if lab.options["earshot"] else "",
        "ES_CA": os.path.join(tls.directory(lab.directory), "ca.pem") if lab.options["tls"] else "",
        "ES_DOCROOT": lab.docroot if lab.options["server"] == "nginx" else "",
    }
