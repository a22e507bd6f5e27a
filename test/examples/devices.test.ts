import t from 'tap'
import { deviceName } from '../../examples/demo/pages/devices.js'

t.test('a device has the name of its browser and system, else what it says of itself', async t => {
  const names = {
    'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0': 'Firefox on Linux',
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36': 'Chrome on Windows',
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1': 'Safari on iOS',
    'curl/8.5.0': 'curl/8.5.0',
    '<b>': '<b>'
  }
  for (const [userAgent, name] of Object.entries(names)) t.equal(deviceName(userAgent), name)
  t.equal(deviceName(null), 'An unknown device')
  t.equal(deviceName(''), 'An unknown device')
})
