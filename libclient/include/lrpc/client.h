// libclient: import an interface and call it. What generated client stubs include.
#pragma once

#include "lrpc/client/call/call.h"
#include "lrpc/client/call/call_scope.h"
#include "lrpc/client/call/pending.h"
#include "lrpc/client/call/stub.h"
#include "lrpc/client/import/binding.h"
#include "lrpc/client/remote/group_call.h"
#include "lrpc/client/remote/remote_path.h"
#include "lrpc/client/wait/completion_queue.h"
#include "lrpc/shim/call/pdl.h"
#include "lrpc/shim/call/value.h"
#include "lrpc/shim/call/variable.h"
#include "lrpc/shim/result.h"
