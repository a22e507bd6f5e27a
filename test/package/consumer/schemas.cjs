const postgres = require('fastify-svc-auth/schema/postgres')
const sqlite = require('fastify-svc-auth/schema/sqlite')

if (postgres.users.userId.name !== 'user_id' || sqlite.users.userId.name !== 'user_id') throw new Error('a table is not the one of the schema')
console.log('require() of the schemas: done')
