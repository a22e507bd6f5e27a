import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')

/** A document of this repository, as those who read it on the web see it. */
export class Markdown {
  readonly text: string

  constructor (text: string) {
    this.text = text
  }

  static async read (path: string): Promise<Markdown> {
    return new Markdown(await readFile(join(ROOT, path), 'utf8'))
  }

  /** What is under a heading, up to the next one of its level or a higher one. */
  section (heading: string): Markdown {
    const [, level = '', rest = ''] = new RegExp(`^(#+) ${heading}\\n(.*)`, 'ms').exec(this.text) ?? []
    if (level === '') throw new Error(`there is no section ${heading}`)
    const [text = ''] = rest.split(new RegExp(`^#{1,${level.length}} (?=[A-Z])`, 'm'))
    return new Markdown(text)
  }

  /** The first table behind a text: the cells of its rows, without the head. */
  table (behind = ''): string[][] {
    const at = this.text.indexOf(behind)
    const [, rows = ''] = /^\|.*\n\|[-:| ]+\n((?:\|.*\n)+)/m.exec(this.text.slice(at)) ?? []
    if (at < 0 || rows === '') throw new Error(`there is no table behind "${behind}"`)
    return rows.trimEnd().split('\n').map(row => row.split(/(?<!\\)\|/).slice(1, -1).map(cell => cell.trim()))
  }

  /** The blocks of a language, as `ts`. */
  blocks (language: string): string[] {
    const fences = this.text.matchAll(new RegExp(`^( *)\`\`\`${language}\\n(.*?)^\\1\`\`\`$`, 'gms'))
    return Array.from(fences, ([, indent = '', code = '']) => code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''))
  }

  /** What is written as code in the text, and not in a block. */
  code (): string[] {
    return Array.from(this.prose().matchAll(/`([^`\n]+)`/g), ([, code = '']) => code)
  }

  /** The text without its blocks of code. */
  prose (): string {
    return this.text.replaceAll(/^( *)```.*?^\1```$/gms, '')
  }

  /** What its headings can be reached by: as GitHub makes anchors of them. */
  anchors (): string[] {
    return Array.from(
      this.prose().matchAll(/^#+ (.*)$/gm),
      ([, heading = '']) => heading.toLowerCase().replaceAll(/[^\p{Letter}\p{Number} _-]/gu, '').replaceAll(' ', '-')
    )
  }

  /** Where its links and images lead to. */
  targets (): string[] {
    const prose = this.prose().replaceAll(/`[^`\n]*`/g, '')
    return [...prose.matchAll(/\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"/g)].map(([, link, attribute]) => link ?? attribute ?? '')
  }
}

/** The documentation: README.md and the pages of docs/. */
export class Documentation {
  /** By path, such as `docs/guards.md`. */
  readonly pages: ReadonlyMap<string, Markdown>

  constructor (pages: ReadonlyMap<string, Markdown>) {
    this.pages = pages
  }

  static async read (): Promise<Documentation> {
    const paths = ['README.md', ...(await readdir(join(ROOT, 'docs'))).filter(name => name.endsWith('.md')).sort().map(name => `docs/${name}`)]
    return new Documentation(new Map(await Promise.all(paths.map(async (path): Promise<[string, Markdown]> => [path, await Markdown.read(path)]))))
  }

  get texts (): Markdown[] {
    return [...this.pages.values()]
  }

  page (path: string): Markdown {
    const page = this.pages.get(path)
    if (page === undefined) throw new Error(`there is no page ${path}`)
    return page
  }

  /** The routes for POST that take neither `next` nor `error_next`, as the section on routes names them. */
  routesWithoutNext (): string[] {
    const text = this.section('Routes').text.replaceAll(/\s+/g, ' ')
    const [, names = ''] = /all but (.*?) also take `next` and `error_next`/.exec(text) ?? []
    return new Markdown(names).code().map(name => name.includes('/') ? `/auth/${name}` : `/auth/local/${name}`)
  }

  /** What is under a heading of docs/, on the page that has it: a table or a rule is on one page. */
  section (heading: string): Markdown {
    const found = [...this.pages].filter(
      ([path, page]) => path.startsWith('docs/') && page.text.split('\n').some(
        line => /^#+ /.test(line) && line.replace(/^#+ /, '') === heading
      )
    )
    const [page, ...others] = found
    if (page === undefined || others.length > 0) throw new Error(`there are ${found.length} sections ${heading}`)
    return page[1].section(heading)
  }
}
