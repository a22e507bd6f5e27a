import { type AuthContext, canRegister, hasMailSignIn, hasMails, hasPasskeys, hasPasswords } from '../context.js'
import { currentPrincipal } from '../current-user/current.js'
import { authenticationOf } from '../session/record.js'
import type { Act } from '../web/act.js'
import { answerWithStatus } from '../web/answers.js'
import { openapiComponents } from '../web/openapi.js'
import { objectOf, operation } from '../web/schema-parts.js'

const { Principal: principal } = openapiComponents.schemas

const offered = {
  password: { type: 'boolean' },
  registration: { type: 'boolean', description: 'By a password' },
  passwordReset: { type: 'boolean', description: 'By a link in a mail' },
  mail: { type: 'boolean', description: 'By a link or a code in a mail' },
  passkeys: { type: 'boolean' },
  remember: { type: 'boolean', description: 'Whether a checkbox `remember` makes a longer session' },
  providers: { type: 'array', items: { type: 'string' }, description: 'The names of the external providers' }
}

const time = { type: 'string', format: 'date-time' }

const authentication = objectOf('How and when the user authenticated; null for a visitor', {
  at: time,
  methods: {
    type: 'array',
    items: { type: 'object', required: ['method', 'at'], properties: { method: { type: 'string' }, at: time } }
  },
  secondFactor: { type: 'boolean', description: 'Whether a second factor was among the methods' }
})

const sessionSchema = operation({
  summary: 'Read the session',
  description: 'The first request of a front end. A visitor gets no cookie.',
  operationId: 'authSession',
  user: 'signed-in-or-not',
  answers: {
    200: objectOf('Who is signed in, and how users may sign in', {
      principal: { ...principal, type: ['object', 'null'], description: 'The signed-in user; null for a visitor' },
      authentication: { ...authentication, type: ['object', 'null'] },
      offers: objectOf('How users may sign in', offered)
    })
  },
  refuses: ['unavailable']
})

export const readSession: Act = {
  mount ({ scope, auth }) {
    const offers = offersOf(auth)
    const options = { schema: sessionSchema, errorHandler: answerWithStatus, exposeHeadRoute: false }
    scope.get('/session', options, async request => ({
      principal: await currentPrincipal(auth, request), authentication: authenticationOf(request), offers
    }))
  }
}

function offersOf (auth: AuthContext): Record<keyof typeof offered, boolean | string[]> {
  return {
    password: hasPasswords(auth),
    registration: canRegister(auth),
    passwordReset: hasMails(auth, 'forgotPassword'),
    mail: hasMailSignIn(auth),
    passkeys: hasPasskeys(auth),
    remember: auth.remember !== null,
    providers: auth.providers.map(({ name }) => name)
  }
}
