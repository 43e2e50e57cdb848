import ipaddress

net = ipaddress.ip_network("192.168.0.0/29")
print(list(map(str, net.hosts())), net.num_addresses, ipaddress.ip_address("10.0.0.1").is_private)
print(ipaddress.ip_address("::1") + 1, list(map(str, ipaddress.ip_network("10.0.0.0/30").subnets())))
