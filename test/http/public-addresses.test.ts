import { BlockList } from 'node:net'
import fc from 'fast-check'
import t from 'tap'
import { isPublicAddress } from '../../lib/core/public-addresses.js'
import { holds } from '../helpers/properties.js'

/** The first and the last address of each range, as the registries of IANA have it. */
const SPECIAL: ReadonlyArray<readonly [range: string, first: string, last: string]> = [
  ['this network', '0.0.0.0', '0.255.255.255'],
  ['private', '10.0.0.0', '10.255.255.255'],
  ['carrier-grade NAT', '100.64.0.0', '100.127.255.255'],
  ['loopback', '127.0.0.0', '127.255.255.255'],
  ['platform of Azure', '168.63.129.16', '168.63.129.16'],
  ['link-local', '169.254.0.0', '169.254.255.255'],
  ['private', '172.16.0.0', '172.31.255.255'],
  ['protocol assignments', '192.0.0.0', '192.0.0.255'],
  ['documentation', '192.0.2.0', '192.0.2.255'],
  ['AS112', '192.31.196.0', '192.31.196.255'],
  ['multicast tunnels', '192.52.193.0', '192.52.193.255'],
  ['6to4 relays', '192.88.99.0', '192.88.99.255'],
  ['private', '192.168.0.0', '192.168.255.255'],
  ['AS112', '192.175.48.0', '192.175.48.255'],
  ['benchmarks', '198.18.0.0', '198.19.255.255'],
  ['documentation', '198.51.100.0', '198.51.100.255'],
  ['documentation', '203.0.113.0', '203.0.113.255'],
  ['multicast', '224.0.0.0', '239.255.255.255'],
  ['reserved and broadcast', '240.0.0.0', '255.255.255.255'],
  ['unspecified', '::', '::'],
  ['loopback', '::1', '::1'],
  ['IPv4-compatible', '::2', '::ffff:ffff'],
  ['IPv4-mapped', '::ffff:0.0.0.0', '::ffff:255.255.255.255'],
  ['IPv4-translated', '::ffff:0:0:0', '::ffff:0:ffff:ffff'],
  ['NAT64', '64:ff9b::', '64:ff9b::ffff:ffff'],
  ['local NAT64', '64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff'],
  ['discard', '100::', '100::ffff:ffff:ffff:ffff'],
  ['protocol assignments', '2001::', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['Teredo', '2001::', '2001:0:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['benchmarks', '2001:2::', '2001:2:0:ffff:ffff:ffff:ffff:ffff'],
  ['ORCHIDv2', '2001:20::', '2001:2f:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['documentation', '2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['6to4', '2002::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['AS112', '2620:4f:8000::', '2620:4f:8000:ffff:ffff:ffff:ffff:ffff'],
  ['documentation', '3fff::', '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['unassigned', '4000::', '4fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['segment routing', '5f00::', '5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['private', 'fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['link-local', 'fe80::', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['site-local', 'fec0::', 'feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['multicast', 'ff00::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff']
]

/** Their neighbours, and hosts of the internet. */
const PUBLIC = [
  '1.0.0.0', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255', '128.0.0.0',
  '168.63.129.15', '168.63.129.17', '169.253.255.255', '169.255.0.0', '172.15.255.255', '172.32.0.0', '191.255.255.255', '192.0.1.0',
  '192.0.3.0', '192.31.195.255', '192.31.197.0', '192.52.192.255', '192.52.194.0', '192.88.98.255', '192.88.100.0', '192.167.255.255',
  '192.169.0.0', '192.175.47.255', '192.175.49.0', '198.17.255.255', '198.20.0.0', '198.51.99.255', '198.51.101.0', '203.0.112.255',
  '203.0.114.0', '223.255.255.255', '8.8.8.8',
  '2000::', '2001:200::', '2001:db7:ffff:ffff:ffff:ffff:ffff:ffff', '2001:db9::', '2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2003::',
  '2606:4700:4700::1111', '2620:4f:7fff:ffff:ffff:ffff:ffff:ffff', '2620:4f:8001::', '3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '3fff:1000::'
]

t.test('no address of a special-purpose range is public', async t => {
  for (const [range, first, last] of SPECIAL) {
    t.equal(isPublicAddress(first), false, `${range}: ${first}`)
    t.equal(isPublicAddress(last), false, `${range}: ${last}`)
  }
})

t.test('the addresses around these ranges are public', async t => {
  t.strictSame(PUBLIC.filter(address => !isPublicAddress(address)), [])
})

t.test('what is not an address is not public', async t => {
  const others = ['', 'localhost', 'client.example', '8.8.8', '8.8.8.8.8', '08.8.8.8', '0x8.8.8.8', '134744072', ' 8.8.8.8', '8.8.8.8:443', '[2606::1]']

  t.strictSame(others.filter(isPublicAddress), [])
})

t.test('an IPv6 address is public only in 2000::/3, however it is spelled, and one that holds an IPv4 address never is', async t => {
  const global = new BlockList()
  global.addSubnet('2000::', 3, 'ipv6')
  await holds(t, fc.property(fc.ipV6(), address => !isPublicAddress(address) || global.check(address, 'ipv6')), 3000)
  await holds(t, fc.property(fc.ipV4(), address => {
    const bytes = address.split('.').map(byte => Number(byte).toString(16).padStart(2, '0'))
    const [high, low] = [`${bytes[0]}${bytes[1]}`, `${bytes[2]}${bytes[3]}`]
    return [`::${address}`, `::ffff:${address}`, `::ffff:0:${address}`, `64:ff9b::${address}`, `64:ff9b:1::${address}`, `2002:${high}:${low}::1`]
      .every(embedding => !isPublicAddress(embedding))
  }), 3000)
})
