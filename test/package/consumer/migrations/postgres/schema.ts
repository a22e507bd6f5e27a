import { relations } from 'drizzle-orm'
import { integer, pgTable, text, uuid } from 'drizzle-orm/pg-core'
import { users } from 'fastify-svc-auth/schema/postgres'

export * from 'fastify-svc-auth/schema/postgres'

export const notes = pgTable('notes', {
  id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
  text: text('text').notNull(),
  authorId: uuid('author').notNull().references(() => users.userId, { onDelete: 'cascade' })
})

export const notesRelations = relations(notes, ({ one }) => ({
  author: one(users, { fields: [notes.authorId], references: [users.userId] })
}))
