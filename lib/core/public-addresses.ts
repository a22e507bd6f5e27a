import { BlockList, isIP } from 'node:net'

/**
 * What is not a host on the internet: the IANA registries of special-purpose addresses (RFC 6890),
 * and multicast. Of IPv6 only what lies in {@link GLOBAL_UNICAST} is listed.
 */
const SPECIAL_PURPOSE: ReadonlyArray<readonly [network: string, bits: number, purpose: string]> = [
  ['0.0.0.0', 8, 'this network, RFC 791'],
  ['10.0.0.0', 8, 'private, RFC 1918'],
  ['100.64.0.0', 10, 'shared by the customers of a provider, RFC 6598'],
  ['127.0.0.0', 8, 'loopback, RFC 1122'],
  ['168.63.129.16', 32, 'the platform of Microsoft Azure, as its machines see it'],
  ['169.254.0.0', 16, 'link-local, RFC 3927; the metadata of cloud machines'],
  ['172.16.0.0', 12, 'private, RFC 1918'],
  ['192.0.0.0', 24, 'protocol assignments, RFC 6890'],
  ['192.0.2.0', 24, 'documentation, RFC 5737'],
  ['192.31.196.0', 24, 'AS112, RFC 7535'],
  ['192.52.193.0', 24, 'multicast tunnels, RFC 7450'],
  ['192.88.99.0', 24, '6to4 relays, RFC 7526'],
  ['192.168.0.0', 16, 'private, RFC 1918'],
  ['192.175.48.0', 24, 'AS112, RFC 7534'],
  ['198.18.0.0', 15, 'benchmarks, RFC 2544'],
  ['198.51.100.0', 24, 'documentation, RFC 5737'],
  ['203.0.113.0', 24, 'documentation, RFC 5737'],
  ['224.0.0.0', 4, 'multicast, RFC 5771'],
  ['240.0.0.0', 4, 'reserved, RFC 1112; broadcast, RFC 919'],
  ['2001::', 23, 'protocol assignments, RFC 2928: Teredo, benchmarks, ORCHID'],
  ['2001:db8::', 32, 'documentation, RFC 3849'],
  ['2002::', 16, '6to4, RFC 3056: has an IPv4 address in it'],
  ['2620:4f:8000::', 48, 'AS112, RFC 7534'],
  ['3fff::', 20, 'documentation, RFC 9637']
]

/**
 * All that is assigned to hosts on the internet (RFC 4291 section 2.4, RFC 3587). Outside of it are
 * loopback, private (fc00::/7), link-local, site-local and multicast addresses, and those with an
 * IPv4 address in them: mapped (::ffff:0:0/96), compatible (::/96), NAT64 (64:ff9b::/96 and /48).
 */
const GLOBAL_UNICAST = new BlockList()
GLOBAL_UNICAST.addSubnet('2000::', 3, 'ipv6')

const NOT_PUBLIC = new BlockList()
for (const [network, bits] of SPECIAL_PURPOSE) NOT_PUBLIC.addSubnet(network, bits, `ipv${isIP(network) === 4 ? 4 : 6}`)

/**
 * Whether an IP address is that of a host on the internet. Everything else may lead into the
 * network of this machine (server-side request forgery).
 */
export function isPublicAddress (address: string): boolean {
  if (isIP(address) === 4) return !NOT_PUBLIC.check(address, 'ipv4')
  return GLOBAL_UNICAST.check(address, 'ipv6') && !NOT_PUBLIC.check(address, 'ipv6')
}
