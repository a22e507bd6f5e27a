import t from 'tap'
import { deviceOf } from './device.js'

t.test('a device is named by browser and system, by one of them, or not at all', async t => {
  const firefox = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:152.0) Gecko/20100101 Firefox/152.0'
  t.equal(deviceOf(firefox), 'Firefox · Windows')
  t.equal(deviceOf('Firefox/152.0'), 'Firefox')
  t.equal(deviceOf('Shop/1.0 (Android 17)'), 'Android')
  for (const unknown of ['curl/8', '', null]) t.equal(deviceOf(unknown), null)
})
