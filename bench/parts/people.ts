import { createHash } from 'node:crypto'
import type { Database } from 'better-sqlite3'
import type { Sql } from 'postgres'

/** A user of a filled database. */
export interface AdmittedUser {
  userId: string
  email: string
  /** Another one at every occasion, of the same length: to write what is there already costs a database little. */
  name: string
  /** Who he is at the provider `dev`. */
  subject: string
}

/** Every so many people has a password too. */
const PEOPLE_A_PASSWORD = 10

export const PASSWORD = 'the right password'

/** Of that password, with what it costs by default. */
const PASSWORD_HASH = '$argon2id$v=19$m=19456,t=2,p=1$OrpmZcjU9ouSpesABuD2Ug$dWzxrCi85FDZZTZTVCXpHwuQNoJ7MJzc/YmTdvKBkXQ'

/** The people are numbered from 1, and follow from their numbers; the tables are filled with occasion 0. */
export function person (number: number, occasion = 0): AdmittedUser {
  const digest = createHash('md5').update(`person ${number}`).digest('hex')
  return {
    userId: digest.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
    email: `person-${number}@example.com`,
    name: `AdmittedUser ${number}, ${String(occasion).padStart(7, '0')}`,
    subject: `subject-${number}`
  }
}

export function anyPerson (users: number): AdmittedUser {
  return person(1 + Math.floor(Math.random() * users), ++occasions)
}

export function anyPersonWithPassword (users: number): AdmittedUser {
  return person(PEOPLE_A_PASSWORD * (1 + Math.floor(Math.random() * Math.floor(users / PEOPLE_A_PASSWORD))), ++occasions)
}

/** Somebody who is in no database of so many users. */
export function newPerson (users: number): AdmittedUser {
  return person(users + ++occasions)
}

let occasions = 0

/** What the application lets somebody do: a claim that everybody has and one that changes. */
export function authorizationClaims ({ name }: AdmittedUser) {
  return { role: 'member', badge: name }
}

/** What the provider `dev` says about somebody. */
export function identityClaims ({ subject: sub, name, email }: AdmittedUser) {
  return { sub, name, email, email_verified: true }
}

/** What the library notes of somebody. */
function notes (number: number, { name, email }: AdmittedUser) {
  return {
    email_verified: true, created_at: number, name_key: name.toLowerCase(), email_domain: email.slice(email.indexOf('@') + 1)
  }
}

/** Puts people into the empty tables of an SQLite database, on a connection that serves nothing else. */
export function fillSqlite (connection: Database, users: number): void {
  const insertUser = connection.prepare('insert into svc_auth_users (user_id, email, name, claims, extras) values (?, ?, ?, ?, ?)')
  const insertLink = connection.prepare('insert into svc_auth_provider_links (provider, subject, user_id, claims) values (?, ?, ?, ?)')
  const insertPassword = connection.prepare('insert into svc_auth_credentials (user_id, pw_hash) values (?, ?)')
  connection.pragma('foreign_keys = OFF')
  connection.pragma('cache_size = -1000000') // KiB; the ids come in no order
  connection.transaction(() => {
    for (let number = 1; number <= users; number++) {
      const someone = person(number)
      const { userId, email, name, subject } = someone
      insertUser.run(userId, email, name, JSON.stringify(authorizationClaims(someone)), JSON.stringify(notes(number, someone)))
      insertLink.run('dev', subject, userId, JSON.stringify(identityClaims(someone)))
      if (number % PEOPLE_A_PASSWORD !== 0) continue
      insertLink.run('local', email, userId, JSON.stringify({ sub: email, email }))
      insertPassword.run(userId, PASSWORD_HASH)
    }
  })()
  connection.exec('analyze')
  connection.pragma('wal_checkpoint(TRUNCATE)')
}

/** Puts people into the empty tables of a Postgres database. */
export async function fillPostgres (client: Sql, users: number): Promise<void> {
  await client.unsafe(`
    insert into svc_auth_users (user_id, email, name, claims, extras)
    select md5('person ' || n)::uuid, 'person-' || n || '@example.com', 'AdmittedUser ' || n || ', 0000000',
      jsonb_build_object('role', 'member', 'badge', 'AdmittedUser ' || n || ', 0000000'),
      jsonb_build_object('email_verified', true, 'created_at', n, 'name_key', 'admitteduser ' || n || ', 0000000', 'email_domain', 'example.com')
    from generate_series(1, ${users}) n;

    insert into svc_auth_provider_links (provider, subject, user_id, claims)
    select 'dev', 'subject-' || n, md5('person ' || n)::uuid,
      jsonb_build_object('sub', 'subject-' || n, 'name', 'AdmittedUser ' || n || ', 0000000',
        'email', 'person-' || n || '@example.com', 'email_verified', true)
    from generate_series(1, ${users}) n;

    insert into svc_auth_provider_links (provider, subject, user_id, claims)
    select 'local', 'person-' || n || '@example.com', md5('person ' || n)::uuid,
      jsonb_build_object('sub', 'person-' || n || '@example.com', 'email', 'person-' || n || '@example.com')
    from generate_series(${PEOPLE_A_PASSWORD}, ${users}, ${PEOPLE_A_PASSWORD}) n;

    insert into svc_auth_credentials (user_id, pw_hash)
    select md5('person ' || n)::uuid, '${PASSWORD_HASH}'
    from generate_series(${PEOPLE_A_PASSWORD}, ${users}, ${PEOPLE_A_PASSWORD}) n;
  `)
  await client.unsafe('vacuum (analyze)')
}
