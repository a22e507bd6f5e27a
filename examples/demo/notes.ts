import type { Database } from 'better-sqlite3'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { DeleteHook, GuestHook } from 'fastify-svc-auth'
import { html } from './html.js'
import { redirectDone, sendPage, takeForms } from './site.js'

/** What users and guests have written. */
export interface Notes {
  of: (userId: string) => string[]
  add: (userId: string, text: string) => void
  /** The hook that gives the notes of a guest to the user as whom they sign in. */
  move: GuestHook
  /** The hook that deletes the notes of a user who leaves. */
  remove: DeleteHook
}

export function keepNotes (database: Database): Notes {
  database.exec('CREATE TABLE IF NOT EXISTS notes (user_id TEXT NOT NULL, text TEXT NOT NULL)')
  database.exec('CREATE INDEX IF NOT EXISTS notes_user ON notes (user_id)')
  const select = database.prepare<string, string>('SELECT text FROM notes WHERE user_id = ? ORDER BY rowid').pluck()
  const insert = database.prepare('INSERT INTO notes VALUES (?, ?)')
  const update = database.prepare('UPDATE notes SET user_id = ? WHERE user_id = ?')
  const remove = database.prepare('DELETE FROM notes WHERE user_id = ?')
  return {
    of: userId => select.all(userId),
    add (userId, text) { insert.run(userId, text) },
    move ({ guest, user }) { update.run(user.userId, guest.userId) },
    remove ({ userId }) { remove.run(userId) }
  }
}

interface NoteForm {
  text: string
}

const note = { type: 'object', required: ['text'], properties: { text: { type: 'string', minLength: 1, maxLength: 200 } } }

/** A page that anyone can use at once: who signs up later keeps what they have written. */
export async function mountNotes (app: FastifyInstance, { notes }: { notes: Notes }): Promise<void> {
  await takeForms(app)

  app.get('/notes', { preHandler: app.auth.refresh }, async (request, reply) => {
    const { principal } = request
    const texts = principal === null ? [] : notes.of(principal.userId)
    return sendPage(reply, 'Your notes', html`
    ${principal?.guest && html`
      <p>You have written without signing in. <a href="/auth/pages/register">Create an account</a>, or
        <a href="/auth/pages/sign-in">sign in</a>: the notes come with you.</p>`}
    <ul>${texts.map(text => html`<li>${text}</li>`)}</ul>
    <form method="post" action="/notes">
      <label for="text">A note</label>
      <input id="text" name="text" maxlength="200" required>
      <button>Keep it</button>
    </form>`)
  })

  app.post('/notes', { schema: { body: note } }, async (request: FastifyRequest<{ Body: NoteForm }>, reply) => {
    const { userId } = await app.auth.signInGuest(request)
    notes.add(userId, request.body.text)
    return redirectDone(reply, '/notes', 'noted')
  })
}
