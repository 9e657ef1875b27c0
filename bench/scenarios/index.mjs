// Every scenario, in the order of the report.
//
// A scenario is `{ name, title, jobs, run(subject, jobs) }`; `run` returns `{ ns, … }`, nanoseconds per request and
// other figures, and throws when the subject did not do what was asked. `needs` lists the caps that a subject must
// have. A scenario with `ways` measures what the common adapter cannot reach: it brings its own subjects.
import backlog from './backlog.mjs';
import burst from './burst.mjs';
import cancel from './cancel.mjs';
import churn from './churn.mjs';
import drain from './drain.mjs';
import endpoints from './endpoints.mjs';
import expiry from './expiry.mjs';
import keyed from './keyed.mjs';
import latency from './latency.mjs';
import matrix from './matrix.mjs';
import priorities from './priorities.mjs';
import steady from './steady.mjs';

export const scenarios = [
  burst,
  steady,
  priorities,
  keyed,
  churn,
  latency,
  backlog,
  drain,
  cancel,
  expiry,
  endpoints,
  matrix,
].flat();
