// libclient: import an interface and call it. What generated client stubs include.
#pragma once

#include "lrpc/client/binding.h"
#include "lrpc/client/call.h"
#include "lrpc/client/call_scope.h"
#include "lrpc/client/completion_queue.h"
#include "lrpc/client/pending.h"
#include "lrpc/client/remote_path.h"
#include "lrpc/client/stub.h"
#include "lrpc/shim/pdl.h"
#include "lrpc/shim/result.h"
#include "lrpc/shim/value.h"
#include "lrpc/shim/variable.h"
