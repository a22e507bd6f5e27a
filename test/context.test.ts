import t from 'tap'
import { needed } from '../lib/core/context.js'

t.test('a part that this process has no option for is unavailable, and the log names the option', async t => {
  t.equal(needed('a part', 'sendMail'), 'a part')
  t.throws(() => needed(null, 'sendMail'), {
    code: 'unavailable', statusCode: 503, cause: { message: 'this process lacks the option sendMail: set it everywhere' }
  })
})
