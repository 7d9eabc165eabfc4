# lrpc_discover_suites(target TIMEOUT seconds LABEL label): one test of ctest for each suite of a GoogleTest program,
# where gtest_discover_tests() makes one of each test: a process that a sanitizer watches takes a tenth of a second to
# start, longer than most tests of units run. The program is asked for its suites after each link.
#
# This file is also that script: cmake -D PROGRAM=... -D OUTPUT=... -D LABEL=... -D TIMEOUT=... -P LrpcSuites.cmake
if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  execute_process(COMMAND "${PROGRAM}" --gtest_list_tests OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY TIMEOUT 60)
  string(REGEX MATCHALL "\n[^ \n]+\\.[ \n]" suites "\n${listed}")  # a suite's tests are indented
  set(script "")
  foreach(suite ${suites})
    string(STRIP "${suite}" suite)
    string(REGEX REPLACE "\\.$" "" suite "${suite}")
    string(APPEND script "add_test([==[${LABEL}.${suite}]==] [==[${PROGRAM}]==] [==[--gtest_filter=${suite}.*]==])\n"
      # A suite is skipped if all of its tests are, and that is the last word of the program. CTest looks for this text
      # before it looks at how the program ended.
      "set_tests_properties([==[${LABEL}.${suite}]==] PROPERTIES LABELS ${LABEL} TIMEOUT ${TIMEOUT}"
      " SKIP_REGULAR_EXPRESSION \"PASSED  []] 0 tests[.]\n([[]  SKIPPED []] [^\n]*\n)+$\")\n")
  endforeach()
  file(WRITE "${OUTPUT}" "${script}")
  return()
endif()

set(LRPC_SUITES_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")
function(lrpc_discover_suites target)
  cmake_parse_arguments(ARG "" "TIMEOUT;LABEL" "" ${ARGN})
  set(tests "${CMAKE_CURRENT_BINARY_DIR}/${target}_suites.cmake")
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${LRPC_SUITES_SCRIPT}")
  add_custom_command(TARGET ${target} POST_BUILD BYPRODUCTS "${tests}" VERBATIM
    COMMAND "${CMAKE_COMMAND}" -D "PROGRAM=$<TARGET_FILE:${target}>" -D "OUTPUT=${tests}" -D "LABEL=${ARG_LABEL}"
            -D "TIMEOUT=${ARG_TIMEOUT}" -P "${LRPC_SUITES_SCRIPT}")
  set(include "${CMAKE_CURRENT_BINARY_DIR}/${target}_suites_or_none.cmake")
  file(WRITE "${include}" "if(EXISTS [==[${tests}]==])\n  include([==[${tests}]==])\nelse()\n"
                          "  add_test(${target}_NOT_BUILT ${target}_NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${include}")
endfunction()
