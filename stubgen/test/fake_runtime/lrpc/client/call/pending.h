// All of the stand-in is in call.h.
#pragma once

#include "lrpc/client/call/call.h"
