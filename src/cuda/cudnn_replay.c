/* cudnn_replay.c: calls of cuDNN that are hundreds of small launches, as one.
 *
 * The host needs longer to launch the steps of a recurrent layer than the GPU to run them. Where a call comes with the
 * places of one before it, as memory that goes round in a loop gives them, its launches are recorded into a graph on a
 * queue of their own, and replayed when the same places come again. */
#include "cudnn_plan.h"
#include "gpu/runtime.h"

static void forget(const wk_cudnn_replay *r, wk_cudnn_recording *k)
{
    if (k->exec)
        r->driver->graph_free(NULL, k->exec);
    *k = (wk_cudnn_recording){0};
}

void wk_cudnn_replay_free(wk_cudnn_replay *r)
{
    for (int i = 0; i < WK_CUDNN_RECORDINGS; i++)
        forget(r, &r->kept[i]);
}

/* Other threads may launch on the handle's stream meanwhile: nothing of theirs is to be recorded. What cannot be recorded
 * leaves no graph; the status is whether the handle is back on its stream. */
static cudnnStatus_t record(cudnnHandle_t h, const wk_driver *driver, void *stream, wk_cudnn_queue *queue,
                            const void *data, void **exec)
{
    void *own = NULL, *graph = NULL;
    if (driver->stream_new(&own))
        return CUDNN_STATUS_SUCCESS;
    if (wk_cudnn.cudnnSetStream(h, own) == CUDNN_STATUS_SUCCESS && driver->capture_begin(own) == 0) {
        bool queued = queue(h, data) == CUDNN_STATUS_SUCCESS;
        if (driver->capture_end(own, &graph) || !queued || driver->graph_build(exec, graph))
            *exec = NULL;
        driver->graph_free(graph, NULL);
    }
    cudnnStatus_t status = wk_cudnn.cudnnSetStream(h, stream);
    driver->stream_free(own);
    return status;
}

/* What is kept for these places; where there is nothing, the oldest makes room. A graph that goes was of little use: the next
 * has to wait longer. */
static wk_cudnn_recording *recording_of(wk_cudnn_replay *r, void *const places[WK_CUDNN_PLACES])
{
    wk_cudnn_recording *oldest = r->kept;
    for (wk_cudnn_recording *k = r->kept; k < r->kept + WK_CUDNN_RECORDINGS; k++) {
        if (k->seen && memcmp(k->places, places, sizeof k->places) == 0)
            return k;
        if (k->last < oldest->last)
            oldest = k;
    }
    if (oldest->exec)
        r->patience = 2 * r->patience + 1;
    forget(r, oldest);
    memcpy(oldest->places, places, sizeof oldest->places);
    return oldest;
}

/* A foreign stream may be recorded by its owner, whom making a graph would disturb. */
cudnnStatus_t wk_cudnn_replayed(cudnnHandle_t h, wk_cudnn_replay *r, const wk_call *c,
                                void *const places[WK_CUDNN_PLACES], wk_cudnn_queue *queue, const void *data)
{
    const wk_gpu *g = wk_gpu_of(c->device);
    const wk_stream *s = wk_gpu_stream(g);
    if (s->graph || s->foreign || r->failed)
        return queue(h, data);
    r->driver = g->driver;
    wk_cudnn_recording *k = recording_of(r, places);
    k->last = ++r->calls;
    if (!k->exec && k->seen++ <= r->patience)
        return queue(h, data);
    cudnnStatus_t status =
        k->exec ? CUDNN_STATUS_SUCCESS : record(h, g->driver, s->handle, queue, data, &k->exec);
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    r->failed = !k->exec;
    if (r->failed)
        return queue(h, data);
    return g->driver->graph_launch(k->exec, s->handle) ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}
