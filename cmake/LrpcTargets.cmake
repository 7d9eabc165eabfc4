# One way to make a library, a program or a test of this project: warnings private, sanitizers in one place, aliases.

# The tests' programs are many: lld links them in a fifth of the time.
if(LRPC_BUILD_TESTS)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=lld LRPC_HAVE_LLD)
  if(LRPC_HAVE_LLD)
    add_link_options(-fuse-ld=lld)
  endif()
endif()

# lrpc_options(target): warnings and sanitizers, never seen by users of the target.
function(lrpc_options target)
  # The sanitizers' builds compile what the plain one has warned of already.
  if(NOT LRPC_SANITIZE)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
                                             -Wnon-virtual-dtor -Woverloaded-virtual)
  endif()
  if(LRPC_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(LRPC_LIBFUZZER)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(LRPC_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${LRPC_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all)
    target_link_options(${target} PRIVATE -fsanitize=${LRPC_SANITIZE})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")  # GCC defines these itself
      if(LRPC_SANITIZE MATCHES "address")
        target_compile_definitions(${target} PRIVATE __SANITIZE_ADDRESS__)
      elseif(LRPC_SANITIZE MATCHES "thread")
        target_compile_definitions(${target} PRIVATE __SANITIZE_THREAD__)
      endif()
    endif()
    if(LRPC_SANITIZE MATCHES "undefined" AND NOT LRPC_LIBFUZZER)
      # vptr opens a pipe to see what it may read: where there is none (no descriptors left, a sealed process) it finds
      # faults that are none. These are two fifths of the time to compile, for what the others find, too (null) or x86
      # allows.
      target_compile_options(${target} PRIVATE -fno-sanitize=vptr$<$<NOT:$<BOOL:${LRPC_ALL_TESTS}>>:,null,alignment>)
    endif()
    if(LRPC_SANITIZE MATCHES "thread")
      if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        # It does not model fences: what they order is atomic anyway.
        target_compile_options(${target} PRIVATE -Wno-tsan)
      endif()
      target_compile_definitions(${target} PRIVATE LRPC_INSTRUMENTED_RUNTIME)  # nothing needs to be told of, handover.h
    endif()
  endif()
endfunction()

# lrpc_library(name SOURCES a.cpp ... DEPENDS lrpc::shim ... PRIVATE_DEPENDS ...): target lrpc_<name>, alias
# lrpc::<name>, public headers in include/, installed and exported as lrpc::<name>.
function(lrpc_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(lrpc_${name} STATIC ${ARG_SOURCES})
  add_library(lrpc::${name} ALIAS lrpc_${name})
  set_target_properties(lrpc_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(lrpc_${name} PUBLIC cxx_std_20)
  target_include_directories(lrpc_${name}
    PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE src)
  target_link_libraries(lrpc_${name} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS})
  lrpc_options(lrpc_${name})
  install(TARGETS lrpc_${name} EXPORT lrpc ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endfunction()

# lrpc_program(target SOURCES ... DEPENDS ... [INSTALL]): an executable of the project. One that is installed
# knows its version, LRPC_VERSION. A sanitizer's build makes those that its tests run.
function(lrpc_program target)
  cmake_parse_arguments(ARG "INSTALL" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${target} ${ARG_SOURCES})
  if(LRPC_SANITIZE AND NOT LRPC_ALL_TESTS)
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  target_link_libraries(${target} PRIVATE ${ARG_DEPENDS})
  lrpc_options(${target})
  if(LRPC_SANITIZE)
    lrpc_test_headers(${target})
  endif()
  if(ARG_INSTALL)
    target_compile_definitions(${target} PRIVATE LRPC_VERSION="${PROJECT_VERSION}")
    install(TARGETS ${target} EXPORT lrpc_programs RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endfunction()

# Which of the three builds of the tests this is: plain, address or thread.
if(LRPC_SANITIZE MATCHES "thread")
  set(LRPC_TEST_BUILD thread)
elseif(LRPC_SANITIZE)
  set(LRPC_TEST_BUILD address)
else()
  set(LRPC_TEST_BUILD plain)
endif()

# lrpc_tested_here(result BUILDS...): whether a test for these builds (none named: every one) belongs into this one.
# With LRPC_ALL_TESTS all do, but ThreadSanitizer's build keeps to those for it: it finds nothing without threads.
function(lrpc_tested_here result)
  foreach(build ${ARGN})
    if(NOT build MATCHES "^(plain|address|thread)$")
      message(FATAL_ERROR "a test has BUILDS of plain, address and thread, not ${build}")
    endif()
  endforeach()
  set(${result} OFF PARENT_SCOPE)
  if(LRPC_ALL_TESTS AND NOT LRPC_TEST_BUILD STREQUAL "thread")
    set(ARGN "")
  endif()
  if(LRPC_BUILD_TESTS AND (NOT ARGN OR LRPC_TEST_BUILD IN_LIST ARGN))
    set(${result} ON PARENT_SCOPE)
  endif()
endfunction()

# lrpc_test(target LABEL unit SOURCES ... [DEPENDS ...] [INTERFACES ...] [BUILDS ...] [INCLUDES ...] [DEFINES ...]
# [RUNS ...]): a GoogleTest program, each of its tests known to ctest by name. INTERFACES are lrpc_generate()'s words.
# BUILDS says where it can find something: plain, address, thread (default: all three; docs/TESTS.md), or quick: plain
# unless the other builds, one of which is named too, run beside it. RUNS: programs of this build that the tests start.
function(lrpc_test target)
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;DEPENDS;INTERFACES;BUILDS;INCLUDES;DEFINES;RUNS" ${ARGN})
  if("quick" IN_LIST ARG_BUILDS)
    list(REMOVE_ITEM ARG_BUILDS quick)
    if(NOT LRPC_QUICK_ELSEWHERE)
      list(APPEND ARG_BUILDS plain)
    endif()
  endif()
  lrpc_tested_here(wanted ${ARG_BUILDS})
  if(NOT wanted)
    return()
  endif()
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE ${ARG_DEPENDS} GTest::gtest GTest::gtest_main)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/tests/support
                                               ${ARG_INCLUDES})
  target_compile_definitions(${target} PRIVATE ${ARG_DEFINES} $<$<BOOL:${LRPC_ALL_TESTS}>:LRPC_ALL_TESTS>)
  if(ARG_INTERFACES)
    lrpc_generate(${target} ${ARG_INTERFACES})
  endif()
  lrpc_options(${target})
  lrpc_test_flags(${target})
  lrpc_guard_forks(${target})
  if(ARG_RUNS)
    add_dependencies(${target} ${ARG_RUNS})
  endif()
  include(GoogleTest)
  include(LrpcSuites)
  set(timeout 600)  # seconds: a net, far above what any takes
  if(LRPC_ALL_TESTS)
    set(timeout 3600)  # in its long form
  endif()
  set(cost 0)
  if(ARG_LABEL MATCHES "^(explore|compiled)$")
    set(cost 100)  # the longest begin first, so that nothing runs alone at the end
  elseif(LRPC_ALL_TESTS AND target STREQUAL "memory_test")
    set(cost 200)  # a quarter of an hour, most of it waiting
  endif()
  if(LRPC_SANITIZE AND ARG_LABEL STREQUAL "unit")
    lrpc_discover_suites(${target} LABEL unit TIMEOUT 3600)
    return()
  endif()
  gtest_discover_tests(${target} TEST_PREFIX "${ARG_LABEL}." DISCOVERY_TIMEOUT 60
                       PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${timeout} COST ${cost})
endfunction()

# lrpc_test_flags(target): what only tests need is compiled with LRPC_TEST_FLAGS, after the build type's own flags; a
# program with precompiled headers.
function(lrpc_test_flags target)
  separate_arguments(flags UNIX_COMMAND "${LRPC_TEST_FLAGS}")
  target_compile_options(${target} PRIVATE ${flags})
  lrpc_test_headers(${target})
endfunction()

# lrpc_guard_forks(target): tests that fork beside threads do not hang with AddressSanitizer
# (tests/support/fork_under_asan.cpp).
function(lrpc_guard_forks target)
  if(NOT LRPC_SANITIZE MATCHES "address")
    return()
  endif()
  if(NOT TARGET lrpc_fork_guard)
    include(CheckSourceCompiles)
    file(READ ${PROJECT_SOURCE_DIR}/tests/support/fork_under_asan.cpp guard)
    set(CMAKE_REQUIRED_FLAGS -fsanitize=${LRPC_SANITIZE})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # clang links it statically if not told otherwise
      set(static_runtime -static-libasan)
    endif()
    set(CMAKE_REQUIRED_LINK_OPTIONS ${static_runtime})
    check_source_compiles(CXX "${guard} int main() {}" LRPC_HAVE_FORK_GUARD)
    add_library(lrpc_fork_guard INTERFACE)
    if(LRPC_HAVE_FORK_GUARD)
      add_library(lrpc_fork_guard_object OBJECT ${PROJECT_SOURCE_DIR}/tests/support/fork_under_asan.cpp)
      lrpc_options(lrpc_fork_guard_object)
      target_sources(lrpc_fork_guard INTERFACE $<TARGET_OBJECTS:lrpc_fork_guard_object>)
      target_link_options(lrpc_fork_guard INTERFACE ${static_runtime})
    else()
      message(WARNING "the tests do not know this AddressSanitizer's locks: tests that fork beside threads may hang")
    endif()
  endif()
  target_link_libraries(${target} PRIVATE lrpc_fork_guard)
endfunction()

# lrpc_test_headers(target): GoogleTest and what every test includes of the standard library, compiled once for all
# programs of the tests, and of a sanitizer's build. Sources include what they use all the same: clang-tidy reads them
# without. (Libraries do without: in their optimised code GCC 12 then gives false warnings, and they are compiled for
# shared objects, too.)
function(lrpc_test_headers target)
  get_target_property(kind ${target} TYPE)
  get_target_property(reused ${target} PRECOMPILE_HEADERS_REUSE_FROM)
  if(NOT kind STREQUAL "EXECUTABLE" OR reused OR NOT LRPC_BUILD_TESTS OR target STREQUAL "lrpc_test_headers")
    return()
  endif()
  if(NOT TARGET lrpc_test_headers)
    add_executable(lrpc_test_headers ${PROJECT_SOURCE_DIR}/tests/support/headers.cpp)
    target_precompile_headers(lrpc_test_headers PRIVATE
      <gtest/gtest.h> <algorithm> <array> <atomic> <chrono> <cstdint> <cstring> <filesystem> <functional> <map> <memory>
      <mutex> <optional> <span> <string> <string_view> <thread> <utility> <vector>)
    target_link_libraries(lrpc_test_headers PRIVATE GTest::gtest)
    lrpc_options(lrpc_test_headers)
    lrpc_test_flags(lrpc_test_headers)
  endif()
  target_compile_options(${target} PRIVATE $<TARGET_PROPERTY:GTest::gtest,INTERFACE_COMPILE_OPTIONS>)
  target_precompile_headers(${target} REUSE_FROM lrpc_test_headers)
endfunction()
