import assert from 'node:assert/strict'

const EMAIL = 'ada@example.com'

/** The command line as npm installs it, on a database. */
export async function checkCommand (project, database) {
  const command = (...args) => project.run('npx', ['fastify-svc-auth', ...args, '--json'], { env: { LOCAL_AUTH_DB: database } })

  await assert.rejects(command('migrate', '--check'))
  assert.equal(JSON.parse(await command('migrate')).migrated.length > 0, true)
  await command('create', EMAIL, '--claim', 'role=admin')
  assert.deepEqual(JSON.parse(await command('show', EMAIL)).claims, { role: 'admin' })
  await command('delete', EMAIL, '--yes')
  await assert.rejects(command('show', EMAIL), /unknown_user/)
  console.log('npx fastify-svc-auth runs')
}
