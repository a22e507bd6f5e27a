import { getTableConfig } from 'drizzle-orm/pg-core'
import t from 'tap'
import * as schema from '../../lib/schema/postgres.js'

t.test('there are three tables with the columns of the specification, and keys that keep them whole', async t => {
  const tables = [schema.users, schema.credentials, schema.providerLinks].map(table => {
    const { name, columns, primaryKeys, indexes, foreignKeys } = getTableConfig(table)
    return {
      name,
      columns: columns.map(column => `${column.name}${column.notNull ? '' : '?'} ${column.getSQLType()}`),
      primaryKey: [...columns.filter(column => column.primary), ...primaryKeys.flatMap(key => key.columns)].map(column => column.name),
      unique: indexes.filter(index => index.config.unique).map(index => index.config.columns.map(column => 'name' in column ? column.name : '')),
      references: foreignKeys.map(key => `${key.reference().columns[0]?.name} ${getTableConfig(key.reference().foreignTable).name} ${key.onDelete}`)
    }
  })
  t.strictSame(tables, [
    {
      name: 'svc_auth_users',
      columns: ['user_id uuid', 'email? text', 'name? text', 'claims jsonb', 'extras jsonb'],
      primaryKey: ['user_id'],
      unique: [['email']],
      references: []
    },
    {
      name: 'svc_auth_credentials',
      columns: ['user_id uuid', 'pw_hash text'],
      primaryKey: ['user_id'],
      unique: [],
      references: ['user_id svc_auth_users cascade']
    },
    {
      name: 'svc_auth_provider_links',
      columns: ['provider text', 'subject text', 'user_id uuid', 'claims jsonb'],
      primaryKey: ['provider', 'subject'],
      unique: [['user_id', 'provider']],
      references: ['user_id svc_auth_users cascade']
    }
  ])
})
