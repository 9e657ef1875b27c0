/** For runtimes that call a handler: the address of the model server comes with the request. */
import { play } from './play.js';

// biome-ignore lint/style/noDefaultExport: a worker is one
export default {
  async fetch(request: Request): Promise<Response> {
    try {
      await play(new URL(request.url).searchParams.get('model') ?? '');
      return new Response('ok');
    } catch (error) {
      return new Response(error instanceof Error ? error.stack : String(error), { status: 500 });
    }
  },
};
