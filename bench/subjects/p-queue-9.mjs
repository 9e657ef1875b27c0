import PQueue from 'p-queue-9';
import { pQueueSubject } from '../lib/p-queue.mjs';

export default pQueueSubject(PQueue, 'p-queue-9', '9.3.5');
