import t from 'tap'
import { limitedBody } from '../../lib/core/fetching.js'

const bodyOf = (text: string | null) => new Response(text).body

t.test('a body is read up to its limit, in bytes', async t => {
  t.equal(await limitedBody(bodyOf('€€€'), 9), '€€€')
  t.equal(await limitedBody(bodyOf('€€€'), 8), null)
  t.equal(await limitedBody(bodyOf('\ufeffabc'), 9), 'abc', 'without the byte order mark')
  t.equal(await limitedBody(bodyOf(null), 9), '')
})

t.test('a body that is too long is not read to its end', async t => {
  let isCancelled = false
  const endless = new ReadableStream<Uint8Array>({
    pull (controller) { controller.enqueue(new Uint8Array(10)) },
    cancel () { isCancelled = true }
  })

  t.equal(await limitedBody(endless, 100), null)
  t.ok(isCancelled)
})
