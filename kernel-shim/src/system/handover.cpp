#include "lrpc/detail/shim/system/handover.h"

namespace lrpc::shim {

std::array<char, 4096> handover_places{};

}  // namespace lrpc::shim

#ifndef LRPC_INSTRUMENTED_RUNTIME
// ThreadSanitizer's run-time library asks for it when the program starts; a program may have its own. Of the inline
// functions of shared pointers to the library's records the linker takes some from the program, which are compiled with
// ThreadSanitizer, and others from here, which are not: it sees references go, but not always the order that their
// count makes, and reports the end of the record.
extern "C" [[gnu::weak, gnu::visibility("default")]] const char* __tsan_default_suppressions();  // NOLINT: not our name
extern "C" const char* __tsan_default_suppressions() {
  return "race:std::_Sp_counted_ptr_inplace<lrpc::client::\n"
         "race:std::_Sp_counted_ptr_inplace<lrpc::server::\n"
         "race:std::_Sp_counted_ptr_inplace<lrpc::shim::\n";
}
#endif
