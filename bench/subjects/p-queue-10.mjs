// Asks for Node 22; what is used here runs on Node 20 as well.
import PQueue from 'p-queue-10';
import { pQueueSubject } from '../lib/p-queue.mjs';

export default pQueueSubject(PQueue, 'p-queue-10', '10.0.0');
