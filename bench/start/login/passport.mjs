import { hash, verify } from '@node-rs/argon2'
import fastifyCookie from '@fastify/cookie'
import { Authenticator, Strategy } from '@fastify/passport'
import fastifySession from '@fastify/session'
import Fastify from 'fastify'
import { ADA, COST, SECRET } from './ada.mjs'
import { connect } from './connect.mjs'

export async function application (database) {
  const users = await usersIn(database)
  const passport = new Authenticator()
  passport.registerUserSerializer(async user => user.email)
  passport.registerUserDeserializer(users.find)
  passport.use(new PasswordStrategy(users.find))

  const app = Fastify()
  app.decorate('users', users)
  await app.register(fastifyCookie)
  await app.register(fastifySession, { secret: SECRET, cookie: { secure: false }, saveUninitialized: false, rolling: false })
  await app.register(passport.initialize())
  await app.register(passport.secureSession())
  app.post('/login', { preValidation: passport.authenticate('password') }, async request => request.user)
  app.addHook('onClose', users.close)
  return app
}

export async function addAda ({ users }) {
  await users.add({ id: '1', email: ADA.email, hash: await hash(ADA.password, COST) })
}

/** What a strategy for passwords is: passport-local has no more. */
class PasswordStrategy extends Strategy {
  constructor (find) {
    super('password')
    this.find = find
  }

  async authenticate (request) {
    const { email, password } = request.body
    const user = await this.find(email)
    if (await verify(user.hash, password)) this.success({ id: user.id, email: user.email })
    else this.fail()
  }
}

/** The least that keeps a user; as with the others, the tables are made when they are missing. */
async function usersIn (database) {
  const connection = await connect(database)
  const table = 'create table if not exists users (id text primary key, email text unique, hash text)'
  if (database.startsWith('postgres:')) {
    await connection.query(table)
    return {
      add: user => connection.query('insert into users values ($1, $2, $3)', Object.values(user)),
      find: async email => (await connection.query('select * from users where email = $1', [email])).rows[0],
      close: () => connection.end()
    }
  }
  connection.exec(table)
  return {
    add: async user => connection.prepare('insert into users values (?, ?, ?)').run(Object.values(user)),
    find: async email => connection.prepare('select * from users where email = ?').get(email),
    close: async () => connection.close()
  }
}
