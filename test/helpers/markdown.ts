import { readFile } from 'node:fs/promises'
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
    return Array.from(this.prose().matchAll(/^#+ (.*)$/gm), ([, heading = '']) => heading.toLowerCase().replaceAll(/[^\p{Letter}\p{Number} _-]/gu, '').replaceAll(' ', '-'))
  }

  /** Where its links and images lead to. */
  targets (): string[] {
    const prose = this.prose().replaceAll(/`[^`\n]*`/g, '')
    return [...prose.matchAll(/\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"/g)].map(([, link, attribute]) => link ?? attribute ?? '')
  }
}
