import { integer, pgTable, text, uuid } from 'drizzle-orm/pg-core'

export const notes = pgTable('notes', {
  id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
  text: text('text').notNull(),
  authorId: uuid('author').notNull()
})
