"""Small files of every kind that the topology parsers read, made up for tests: valid ones, to be cut and garbled."""

CONF_TREE = """# a fat tree
SwitchName=root Switches=p[0-1]
SwitchName=p0 Switches=s[0,1] LinkSpeed=400
SwitchName=p1 switches="s2"
SwitchName=s0 Nodes=n[01-04] LinkSpeed=200  # near the door
SwitchName=s1 Nodes=n05,n[06-08]
SwitchName=s2 \\
  Nodes=gpu-[1-2]-ib
"""
CONF_BLOCKS = """BlockName=b0 Nodes=n[0-3]
BlockName=b1 Nodes=n[4-7]
#BlockName=b2 Nodes=n[8-10]
BlockSizes=4,8
"""
YAML_TREE = """---
- topology: flat
  flat: true
- topology: main
  cluster_default: true
  tree:
    switches:
      - switch: root
        children: s[0-1]
      - switch: s0
        nodes: n[1-2]
      - switch: s1
        nodes: n[3-4]
"""
SHOW_TREE = """SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1-4]
SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[5-8]
SwitchName=root Level=1 LinkSpeed=1 Nodes=n[1-8] Switches=s[0-1]
"""
SHOW_BLOCKS = """BlockName=b0 BlockIndex=0 Nodes=n[0-3] BlockSize=4
BlockName=b1 BlockIndex=1 Nodes=n[4-7] BlockSize=4
AggregatedBlock=b[0-1] BlockIndex=2 Nodes=n[0-7] BlockSize=8
"""
ADDRESSES = """0 root.p0.s0.n1 switch.switch.switch.node
1 root.p0.s0.n2 switch.switch.switch.node
2 root.p1.s[2,4].n5 switch.switch.switch.node
"""
NODES = """NodeName=c1 Arch=x86_64 CoresPerSocket=16
   CPUAlloc=0 CPUTot=64 CPULoad=0.1
   AvailableFeatures=ib,big ActiveFeatures=ib,big
   Gres=gpu:h100:4(S:0-1),shard:h100:8(S:0-1)
   OS=Linux 6.1.0 #1 SMP Debian
   RealMemory=500000 Sockets=2 Boards=1
   State=IDLE+DRAIN ThreadsPerCore=2 Weight=10 Owner=N/A
   CfgTRES=cpu=64,mem=500000M,gres/gpu=4,gres/gpu:h100=4

NodeName=c2 Arch=x86_64 CoresPerSocket=8 CPUTot=16 Gres=(null) Sockets=2 State=ALLOCATED ThreadsPerCore=1 Weight=1
"""
NODES_JSON = """{"nodes": [
 {"name": "c1", "cpus": 64, "sockets": 2, "cores": 16, "threads": 2, "gres": "gpu:h100:4", "state": ["IDLE", "DRAIN"],
  "weight": {"set": true, "infinite": false, "number": 10}, "tres": "cpu=64", "active_features": ["ib"]},
 {"name": "c2", "cpus": 16, "gres": "", "state": "ALLOCATED", "weight": 1}
], "errors": []}
"""
SLURM_CONF = """ClusterName=x
NodeName=DEFAULT Sockets=2 CoresPerSocket=8 Weight=5
NodeName=n[1-4] CPUs=32 Gres=gpu:a100:8
NodeName=n[5-8] Weight=1
PartitionName=p Nodes=ALL
"""
SINFO = """NODELIST   NODES PARTITION STATE  CPUS S:C:T  WEIGHT GRES              GRES_USED
n1         1     p*        idle   32   2:8:2  1      gpu:a100:4(S:0-1) gpu:a100:0(IDX:N/A)
n2         1     p*        mix    32   2:8:2  1      gpu:a100:4(S:0-1) gpu:a100:3(IDX:0-2)
n2         1     q         mix    32   2:8:2  1      gpu:a100:4(S:0-1) gpu:a100:3(IDX:0-2)
"""
GRES = "gpu:a100:4(S:0-1),lscratch:3200\ngpu:2g.10gb:3\n(null)\n"
MATRIX = (
    "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV4\tPXB\tSYS\t0-15,32-47\t0\t\tN/A\n"
    "GPU1\tNV4\t X \tSYS\tPIX\t16-31,48-63\t1\t\tN/A\n"
    "NIC0\tPXB\tSYS\t X \tSYS\t\t\t\t\n"
    "NIC1\tSYS\tPIX\tSYS\t X \t\t\t\t\n"
    "\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n"
    "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_bond_1\n"
)
P2P = " \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n"
LIST = """GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-11111111-0000-0000-0000-000000000000)
  MIG 3g.40gb     Device  0: (UUID: MIG-aaaaaaaa-0000-0000-0000-000000000000)
  MIG 4g.40gb     Device  1: (UUID: MIG-bbbbbbbb-0000-0000-0000-000000000000)
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-22222222-0000-0000-0000-000000000000)
"""
HWLOC = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x0000000f" nodeset="0x00000003">
    <object type="Package" os_index="0" cpuset="0x00000003" nodeset="0x00000001">
      <object type="NUMANode" os_index="0" cpuset="0x00000003" nodeset="0x00000001" local_memory="1024"/>
      <object type="Core" os_index="0" cpuset="0x00000003"><object type="PU" os_index="0" cpuset="0x00000001"/>
        <object type="PU" os_index="1" cpuset="0x00000002"/></object>
      <object type="Bridge" bridge_type="0-1" bridge_pci="0000:[00-1f]">
        <object type="Bridge" bridge_type="1-1" pci_busid="0000:01:00.0" pci_type="0604 [10b5:9781] [0:0] 00">
          <object type="PCIDev" pci_busid="0000:02:00.0" pci_type="0302 [10de:2330] [10de:16c1] a1">
            <object type="OSDev" name="cuda0" osdev_type="5"/><object type="OSDev" name="nvml0" osdev_type="1"/>
          </object>
          <object type="PCIDev" pci_busid="0000:03:00.0" pci_type="0207 [15b3:1021] [15b3:0001] 00">
            <object type="OSDev" name="ib0" osdev_type="2"/><object type="OSDev" name="mlx5_0" osdev_type="3"/>
          </object>
        </object>
      </object>
    </object>
    <object type="Package" os_index="1" cpuset="0x0000000c" nodeset="0x00000002">
      <object type="NUMANode" os_index="1" cpuset="0x0000000c" nodeset="0x00000002"/>
      <object type="PU" os_index="2" cpuset="0x00000004"/><object type="PU" os_index="3" cpuset="0x00000008"/>
    </object>
  </object>
  <distances2 type="NUMANode" nbobjs="2" kind="5" indexing="os">
    <indexes length="4">0 1 </indexes><u64values length="6">10 21 </u64values><u64values length="6">21 10 </u64values>
  </distances2>
</topology>
"""
NCCL_XML = """<system version="1">
  <cpu numaid="0" affinity="00000000,0000ffff" arch="x86_64">
    <pci busid="0000:01:00.0" class="0x060400">
      <pci busid="0000:02:00.0" class="0x030200"><gpu dev="0" sm="90" rank="0" gdr="1">
        <nvlink target="0000:04:00.0" count="18" tclass="0x068000"/></gpu></pci>
      <pci busid="0000:03:00.0" class="0x020700"><nic><net name="mlx5_0" dev="0" speed="400000" port="1"/></nic></pci>
    </pci>
  </cpu>
  <cpu numaid="-1" affinity="ffff0000"><nic><net name="eth0" dev="1" speed="10000" port="1"/></nic></cpu>
</system>
"""
IBNET = """#
# Topology file: generated on Mon Jan  1 00:00:00 2024
#
# Initiated from node 0002c903000e0b72 port 0002c903000e0b73

vendid=0x2c9
devid=0xcb20
switchguid=0xe41d2d0300a1(e41d2d0300a1)
Switch\t36 "S-0000e41d2d0300a1"\t\t# "MF0;leaf1:MSB7700/U1" enhanced port 0 lid 3 lmc 0
[1]\t"H-0000000000000001"[1](1) \t\t# "node1 mlx5_0" lid 4 4xEDR
[2]\t"H-0000000000000002"[1](2) \t\t# "node2 HCA-1" lid 5 4xEDR
[36]\t"S-0000e41d2d0300b1"[1]\t\t# "MF0;spine1:MSB7700/U1" lid 9 4xEDR

Switch\t36 "S-0000e41d2d0300a2"\t\t# "MF0;leaf2:MSB7700/U1" enhanced port 0 lid 6 lmc 0
[1][ext 7]\t"H-0000000000000003"[1](3) \t\t# "node3 mlx5_0" lid 7 4xEDR
[36]\t"S-0000e41d2d0300b1"[2]\t\t# "MF0;spine1:MSB7700/U1" lid 9 4xEDR

Switch\t36 "S-0000e41d2d0300b1"\t\t# "MF0;spine1:MSB7700/U1" enhanced port 0 lid 9 lmc 0
[1]\t"S-0000e41d2d0300a1"[36]\t\t# "MF0;leaf1:MSB7700/U1" lid 3 4xEDR
[2]\t"S-0000e41d2d0300a2"[36]\t\t# "MF0;leaf2:MSB7700/U1" lid 6 4xEDR
[37]\t"H-0000000000000009"[1](9) \t\t# "Mellanox Technologies Aggregation Node" lid 10 4xHDR

caguid=0x1
Ca\t1 "H-0000000000000001"\t\t# "node1 mlx5_0"
[1](1) \t"S-0000e41d2d0300a1"[1]\t\t# lid 4 lmc 0 "MF0;leaf1:MSB7700/U1" lid 3 4xEDR

Ca\t1 "H-0000000000000002"\t\t# "node2 HCA-1"
[1](2) \t"S-0000e41d2d0300a1"[2]\t\t# lid 5 lmc 0 "MF0;leaf1:MSB7700/U1" lid 3 4xEDR

Ca\t1 "H-0000000000000003"\t\t# "node3 mlx5_0"
[1](3) \t"S-0000e41d2d0300a2"[1]\t\t# lid 7 lmc 0 "MF0;leaf2:MSB7700/U1" lid 6 4xEDR

Ca\t1 "H-0000000000000009"\t\t# "Mellanox Technologies Aggregation Node"
[1](9) \t"S-0000e41d2d0300b1"[37]\t\t# lid 10 lmc 0 "MF0;spine1:MSB7700/U1" lid 9 4xHDR
"""
NCCL_LOG = """# nccl-tests version 2.17.2 nccl-headers=22703 nccl-library=22703
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20
#
# Using devices
#  Rank  0 Group  0 Pid   1001 on       nodeA device  0 [0000:07:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   1002 on       nodeA device  1 [0000:0a:00] NVIDIA H100 80GB HBM3
#
#                                                      out-of-place                   in-place
#   size   count    type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#    (B) (elements)                          (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
       8       2   float     sum      -1    12.34    0.00    0.00       0    12.30    0.00    0.00       0
      16       4   float     sum      -1    12.50    0.00    0.00       0    12.40    0.00    0.00     N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.00125
#
# Collective test concluded: all_reduce_perf
"""
OSU = """# OSU MPI Allreduce Latency Test v7.4
# Datatype: MPI_INT.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
4                       3.51              3.20              3.90        1000
8                       3.55              3.21              3.95        1000
1048576               410.02            400.10            420.55         100
"""
SAMPLES = {
    "topology.conf": CONF_TREE,
    "blocks.conf": CONF_BLOCKS,
    "topology.yaml": YAML_TREE,
    "show_tree": SHOW_TREE,
    "show_blocks": SHOW_BLOCKS,
    "addresses": ADDRESSES,
    "nodes": NODES,
    "nodes.json": NODES_JSON,
    "slurm.conf": SLURM_CONF,
    "sinfo": SINFO,
    "gres": GRES,
    "matrix": MATRIX,
    "p2p": P2P,
    "list": LIST,
    "hwloc.xml": HWLOC,
    "nccl.xml": NCCL_XML,
    "ibnetdiscover": IBNET,
    "nccl.log": NCCL_LOG,
    "osu.log": OSU,
}
