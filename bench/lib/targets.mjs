// What headgate sets out to reach, and how far it is.

/** `actual(find)` reads the figure; `find(scenario, subject)` gives the summaries, or throws MissingFigure. */
const targets = [
  ...['burst', 'burst-io', 'keyed1', 'keyed100', 'keyed10k'].map((name) => overPermit(name, 1.3)),
  overPermit('keyed100k', 1.2),
  overPermit('priorities', 1.35),
  overPermit('steady', 1.4),
  {
    what: 'keyed100k over keyed1, per request',
    unit: '×',
    atMost: 1.5,
    actual: (find) => find('keyed100k').ns.median / find('keyed1').ns.median,
  },
  heapOverPermit('backlog'),
  {
    what: 'backlog-alone: heap per waiting request, by `enqueue` alone',
    unit: ' B',
    atMost: 450,
    actual: (find) => find('backlog-alone').bytes.median,
  },
  ...['cancel', 'expiry', 'expiry-mixed'].map((name) => ({
    what: `${name} over dispatching the same requests`,
    unit: '×',
    atMost: 2,
    actual: (find) => find(name).perDispatch.median,
  })),
  ...[
    ['', 'ns'],
    [', by `abort()` without a reason', 'plainNs'],
  ].map(([how, figure]) => ({
    what: `cancel-alone: more than a promise and a listener of Node${how}`,
    unit: ' ns',
    atMost: 4000,
    actual: (find) => find('cancel-alone')[figure].median - find('cancel-alone', 'node')[figure].median,
  })),
  {
    what: 'drain: how late a 1 ms timer is at worst',
    unit: ' ms',
    atMost: 20,
    actual: (find) => find('drain').latenessMs.median,
  },
  {
    what: '`tryEnqueue` and `release`, more than a counter',
    unit: ' ns',
    atMost: 150,
    actual: (find) => find('try').ns.median - find('try', 'counter').ns.median,
  },
];

function overPermit(name, atMost) {
  return { what: `${name} over the permit bound`, unit: '×', atMost, actual: (find) => find(name)['to-permit'].median };
}

function heapOverPermit(name) {
  return {
    what: `${name}: heap per waiting request over the permit bound`,
    unit: '×',
    atMost: 1.25,
    actual: (find) => find(name).bytes.median / find(name, 'permit').bytes.median,
  };
}

class MissingFigure extends Error {}

/** `[{ what, unit, atMost, actual }]`; `actual` is undefined while it has not been measured. */
export function judgeTargets(scenarios) {
  const find = (name, subject = 'headgate') => {
    const figures = scenarios.find((scenario) => scenario.name === name)?.subjects[subject];
    if (figures === undefined || figures.failed !== undefined) throw new MissingFigure();
    return figures;
  };
  return targets.map((target) => {
    try {
      return { ...target, actual: target.actual(find) };
    } catch (error) {
      if (error instanceof MissingFigure) return { ...target, actual: undefined };
      throw error;
    }
  });
}
